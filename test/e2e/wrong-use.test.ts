import fs from 'node:fs'
import { createServer } from 'node:net'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { projectOf, TestProject } from './support/project.ts'
import { shell } from './support/servo.ts'

const ONE = `import { asset } from 'servo-flow'\nexport const a = asset('a', { run: () => 1 })\n`

let project: TestProject
beforeAll(() => {
  project = new TestProject({ 'assets/one.ts': ONE })
})
afterAll(async () => {
  await project.end()
})

describe('wrong use ends with 2, says what to do, and does nothing', () => {
  // test/e2e/messages has every message; here are a few in processes of their own.
  test.each<[string[], string, RegExp]>([
    [['rum'], "unknown command 'rum'", /Did you mean run/],
    [['runs', 'show'], 'missing argument <run>', /Usage: servo runs show/],
  ])('is told as text to people and as JSON to programs: %j', async (args, message, hint) => {
    const [said, told] = await Promise.all([project.servo(...args), project.servo(...args, '--json')])
    expect(said).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(`^error: ${message}\nhint: `) })
    const error = { kind: 'invalid', code: 'wrong_use', message, hint: expect.stringMatching(hint) }
    expect([told.code, told.stdout, JSON.parse(told.stderr)]).toEqual([2, '', { error }])
    expect(fs.existsSync(project.file('.servo'))).toBe(false)
  })

  describe('a * that the shell replaced by names of files', () => {
    const NAMED = `import { asset, daily } from 'servo-flow'
export const a = asset('a', { run: () => 1 })
export const days = asset('assets', { partitions: daily({ start: '2025-01-01', end: '2025-02-01' }), run: () => 1 })
`
    let own: TestProject
    beforeAll(() => {
      own = new TestProject({ 'assets/one.ts': NAMED, 'assets/two.ts': '', 'raw/one.csv': '', 'raw/two.csv': '' })
    })
    afterAll(() => own.end())

    // Refused by the parser, by the project, and by the server alike.
    test.each([
      ['run *', "servo run '*'"],
      ['run --dry-run *', "servo run --dry-run '*'"],
      ['run raw/*', "servo run 'raw/*'"],
      ['run a --partition *', "servo run a --partition '*'"],
      ['run --partition * --quiet', "servo run --partition '*' --quiet"],
      ['run "group:x or key:y" --partition *', "servo run 'group:x or key:y' --partition '*'"],
      ['assets show *', 'Name one asset: servo assets list shows them.'],
      ['schedules create all --cron @daily --select *', "servo schedules create all --cron @daily --select '*'"],
      ['backfills preview a --partitions *', "servo backfills preview a --partitions '*'"],
      ['show *', 'Name one asset: servo assets list shows them.'],
      ['query select * from runs', 'Quote the whole query: servo query "select …"'],
    ])('is recognized: servo %s', async (line, meant) => {
      const { code, stdout, stderr } = await shell(`servo ${line}`, own.dir)
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      const pattern = line.includes('raw/*') ? 'raw/*' : '*'
      expect(stderr).toMatch(/^error: .+\nhint: /)
      expect(stderr).toContain(`hint: The shell put names of files in place of ${pattern}. `)
      expect(stderr).toContain(meant)
      expect(fs.existsSync(own.file('.servo'))).toBe(false)
    })

    test('is not seen in an asset that is called as a file', async () => {
      const { code, stderr } = await own.servo('run', 'assets', '--dry-run')
      expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('assets') })
      expect(stderr).not.toContain('shell')
      const only = await own.servo('run', 'raw', '--dry-run')
      expect(only.stderr).toContain('asset raw not found')
      expect(only.stderr).not.toContain('shell')
    })
  })

  test('a request that is refused leaves nothing behind, not even the folder of the state', async () => {
    const own = projectOf({ 'assets/one.ts': ONE })
    for (const [line, code] of [
      ['run nothing', 2],
      ['run group:nope', 2],
      ['run a --partition 2025-01-01', 2],
      ['run a --detach', 3],
      ['run a --failed', 0],
      ['runs rerun run_a', 2],
    ] as const) {
      const ran = await own.servo(...line.split(' '))
      expect.soft({ line, code: ran.code, folder: own.has('.servo') }, ran.stderr).toEqual({ line, code, folder: false })
    }
    own.write('assets/one.ts', 'export const a = [')
    expect(await own.servo('run', 'a')).toMatchObject({ code: 2, stderr: expect.stringMatching(/^error: assets\/one\.ts:1/) })
    expect(own.has('.servo')).toBe(false)
  })

  test('a port that is taken', async () => {
    const taken = createServer()
    const port = await new Promise<number>((resolve) =>
      taken.listen(0, '127.0.0.1', () => resolve((taken.address() as { port: number }).port)),
    )
    onTestFinished(() => void taken.close())
    const own = projectOf({ 'assets/one.ts': ONE })
    const { code, stderr } = await own.servo('dev', '--port', String(port))
    expect(stderr).toBe(`error: port ${port} is in use\nhint: Choose another with --port; --port 0 takes any that is free.\n`)
    expect(code).toBe(2)
    // The project is not held by what did not start.
    expect((await own.servo('run', 'a', '--quiet')).code).toBe(0)
  })

  test.each([
    ['SERVO_WATCH', 'false', 'off'],
    ['SERVO_LEASE_MS', 'abc', 'milliseconds from 10 to 3600000'],
  ])('a setting of the environment that is none: %s=%s', async (name, value, allowed) => {
    const own = projectOf({ 'assets/one.ts': ONE })
    const { code, stderr } = await own.begin(['run', 'a'], { [name]: value }).ended
    expect(stderr).toBe(`error: ${name} cannot be "${value}"\nhint: Set ${name} to ${allowed}, or unset it.\n`)
    expect(code).toBe(2)
  })

  test('a setting of the environment that is empty is not set', async () => {
    const own = projectOf({ 'assets/one.ts': ONE })
    expect(await own.begin(['run', 'a', '--quiet'], { SERVO_WATCH: '' }).ended).toMatchObject({ code: 0 })
  })

  test('an option of inProcess that there is not', async () => {
    const config = `import { defineConfig, inProcess, local } from 'servo-flow'
const dev = { storage: local('.servo'), queue: inProcess({ concurency: 3 }) }
export default defineConfig({ project: 'shop', dirs: ['assets'], environments: { dev } })
`
    const own = projectOf({ 'servo.config.ts': config, 'assets/one.ts': ONE })
    const { code, stderr } = await own.servo('run', 'a')
    expect(stderr).toMatch(/^error: servo\.config\.ts:2.* inProcess\(\): unknown option `concurency`\n/)
    expect(stderr).toContain('Write inProcess({ concurrency: 8 }).')
    expect(code).toBe(2)
  })

  test('[T14] what can be declared and does not work yet is refused, with the option and the file', async () => {
    const config = `import { cloudTasks, defineConfig, gcs, inProcess, local, postgres, s3 } from 'servo-flow'
const cloud = { storage: gcs('gs://shop'), queue: cloudTasks({ project: 'p', location: 'l', queue: 'q', serviceUrl: 'https://x' }) }
export default defineConfig({
  project: 'shop',
  dirs: ['assets'],
  environments: {
    dev: { storage: local('.servo'), queue: inProcess() },
    prod: { storage: s3('s3://shop'), queue: postgres('') },
    cloud,
  },
})
`
    const assets = `import { asset, source, when } from 'servo-flow'
import { z } from 'zod'
const run = () => 1
export const a = asset('a', { run, automation: when.eager() })
export const b = asset('b', { run })
export const c = asset('c', { run })
export const d = asset('d', { run, freshness: { within: '1d', warn: '2h' } })
export const far = source('far', { schema: z.object({}), uri: 's3://crm/*.parquet' })
export const e = asset('e', { run, inputs: { far } })
export const f = asset('f', { run, inputs: { far }, queue: 'elsewhere' })
export const g = asset('g', { run, deps: [far], freshness: { within: '1d' } })
`
    const own = projectOf({ 'servo.config.ts': config, 'assets/all.ts': assets })
    const { code, stderr } = await own.servo('run', '*', '--json')
    const problems: { code: string; message: string; file: string; line?: number }[] = JSON.parse(stderr).error.problems
    expect(new Set(problems.map((problem) => problem.code))).toEqual(new Set(['not_available_yet']))
    expect(problems.map(({ file, line, message }) => [file, line, message.replace(' is not available yet', '')])).toEqual([
      ['assets/all.ts', 4, 'automation of a'],
      ['assets/all.ts', 7, 'freshness.warn of d'],
      ['assets/all.ts', 9, 'input far of e: the source far at s3://'],
      ['servo.config.ts', undefined, 'environment prod (s3(), postgres())'],
      ['servo.config.ts', undefined, 'environment cloud (gcs(), cloudTasks())'],
    ])
    expect(code).toBe(2)
  })

  test('a project that cannot be loaded: servo run shows what is wrong, with its place', async () => {
    const broken = projectOf({ 'assets/one.ts': ONE, 'assets/x.ts': 'export const x = [\n  1 2\n]\n' })
    const { code, stderr } = await broken.servo('run', 'a')
    expect(stderr).toMatch(/^error: assets\/x\.ts:2/)
    expect(code).toBe(2)
    const json = await broken.servo('run', 'a', '--json')
    expect(JSON.parse(json.stderr).error.problems).toMatchObject([{ file: 'assets/x.ts', line: 2 }])
  })
})

describe('what the system refuses ends with 3, and says where', () => {
  test('a file where the folder of the state belongs', async () => {
    const own = projectOf({ 'assets/one.ts': ONE, '.servo': 'not a folder' })
    for (const args of [['dev'], ['run', 'a'], ['runs', 'list']]) {
      const { code, stderr } = await own.servo(...args)
      expect(stderr).toMatch(/^error: \/.*\.servo is a file, not a folder\nhint: Move it away: .*\n$/)
      expect(code).toBe(3)
    }
  })

  test.each([
    ['leads nowhere', '../gone', /\.servo is a symbolic link to \.\.\/gone, which does not exist\nhint: Create that folder/],
    ['leads to itself', '.servo', /\.servo is a symbolic link that leads back to itself \(\.servo\)\nhint: Remove the link/],
  ])('a link in the place of the folder that %s', async (_, target, message) => {
    const own = projectOf({ 'assets/one.ts': ONE })
    fs.symlinkSync(target, own.file('.servo'))
    for (const args of [
      ['run', 'a'],
      ['runs', 'list'],
    ]) {
      const { code, stderr } = await own.servo(...args)
      expect(stderr).toMatch(message)
      expect(code).toBe(3)
    }
  })

  // Nothing is read-only for root, so there is nothing to promise to it.
  const promised = process.getuid?.() === 0 ? () => undefined : test
  promised('a folder that may not be written', async () => {
    const own = projectOf({ 'assets/one.ts': ONE })
    fs.chmodSync(own.dir, 0o555)
    onTestFinished(() => fs.chmodSync(own.dir, 0o755))
    for (const args of [['dev'], ['run', 'a']]) {
      const { code, stderr } = await own.servo(...args)
      expect(stderr).toMatch(
        /^error: cannot create \.servo in .*: the folder cannot be written\nhint: Check who owns the folder, .*\n$/,
      )
      expect(code).toBe(3)
    }
  })
})
