import fs from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { descendants, isAlive } from './support/processes.ts'
import { projectOf, TestProject } from './support/project.ts'
import type { Servo } from './support/servo.ts'
import { until } from './support/until.ts'

const SMALL = `import { asset } from 'servo-flow'
export const a = asset('a', { run: () => 1 })
export const b = asset('b', {
  inputs: { a },
  run({ a, log }) {
    log.info('a is ' + a)
    return a + 1
  },
})
export const bad = asset('bad', { run() { throw new Error('no such column: price') } })
export const below = asset('below', { inputs: { bad }, run: () => 1 })
`

const one = (key: string, options = ''): string =>
  `import { asset } from 'servo-flow'\nexport const it = asset('${key}', { ${options} run: () => 1 })\n`

describe('servo dev', () => {
  let project: TestProject
  let dev: Servo
  beforeAll(async () => {
    project = new TestProject({ 'assets/small.ts': SMALL })
    dev = await project.dev()
  })
  afterAll(() => project.end())

  test('says in its first line what it runs, where, and how fast it was', () => {
    expect(dev.shown).toMatch(/^servo dev {2}shop {2}4 assets {2}http:\/\/127\.0\.0\.1:\d+ {2}ready in \d+ ms\n/)
  })

  test('servo run shows each task of its run and what it prints, until the run is over, and ends with 0', async () => {
    const { stdout, stderr, code } = await project.servo('run', 'a', 'b')
    expect(stdout).toMatch(/^run_\w{8} {2}2 tasks\n/)
    expect(stdout).toMatch(/\n {2}succeeded +\d+ ms {2}a\n/)
    expect(stdout).toMatch(/\n {2}b │ a is 1\n/)
    expect(stdout).toMatch(/\n {2}succeeded +\d+ ms {2}b\n/)
    expect(stdout).toMatch(/\nsucceeded {2}run_\w{8} {2}2 tasks in [\d.]+ m?s\n$/)
    expect(stdout).not.toMatch(/ \n/)
    expect(stderr).toBe('')
    expect(code).toBe(0)
    await dev.says(/ run_\w{8} {2}succeeded +[\d.]+ m?s {2}2 tasks\n/)
  })

  test('with --detach the answer comes at once, with how to follow the run', async () => {
    const { stdout, code } = await project.servo('run', 'b', '--detach')
    const [, id] = /^accepted {2}(run_\w{26})\nfollow it: servo runs logs -f run_\w{8}\n$/.exec(stdout) ?? []
    expect(code).toBe(0)
    await until(async () => (await (await project.client()).runs.get(id as string)).run['state'] === 'SUCCEEDED')
  })

  test('a run that fails ends with 1, and says why and what to do next', async () => {
    const { stdout, code } = await project.servo('run', 'bad', 'below')
    expect(stdout).toMatch(/\n {2}failed +\d+ ms {2}bad {2}no such column: price\n/)
    expect(stdout).toMatch(/\n {2}skipped +below {2}because of bad\n/)
    expect(stdout).toMatch(
      /\nfailed {2}run_\w{8} {2}1 failed, 1 skipped in .*\n {2}bad\n {4}no such column: price\n {8}at run \(assets\/small\.ts:10:49\)\n.*servo runs logs run_\w{8}\n.*servo runs rerun run_\w{8}\n$/,
    )
    expect(code).toBe(1)
    await dev.says(
      /failed +\d+ ms {2}bad {2}no such column: price\n +no such column: price\n +at run \(assets\/small\.ts:10:49\)\n/,
    )
  })

  test('an asset that nobody declares is refused before anything runs', async () => {
    const { stderr, code } = await project.servo('run', 'aa')
    expect(stderr).toMatch(/^error: asset aa not found\b/)
    expect(code).toBe(2)
  })

  test('a second one on the same project is refused, and says where the first is and how to go on', async () => {
    const { stdout, stderr, code } = await project.servo('dev')
    expect(stderr).toMatch(
      /^error: this project is already running: process \d+ at http:\/\/127\.0\.0\.1:\d+\nhint: Use it \(servo run …\), or stop it first\.\n$/,
    )
    expect(stdout).toBe('')
    expect(code).toBe(2)
  })

  test('a file that is saved is loaded, and what it declares can be run', async () => {
    const before = dev.shown.length
    project.write('assets/new.ts', one('fresh'))
    await dev.says(/loaded {2}1 asset changed in \d+ ms/, before)
    expect((await project.servo('run', 'fresh')).code).toBe(0)
  })

  test('a command that names what was saved a moment ago waits until it is loaded', async () => {
    project.write('assets/newer.ts', one('newer'))
    const { stderr, code } = await project.servo('run', 'newer')
    expect({ stderr, code }).toEqual({ stderr: '', code: 0 })
    project.write('assets/newest.ts', one('newest'))
    expect((await project.servo('assets', 'show', 'newest')).stdout).toMatch(/^newest {2}asset/)
  })

  test('a script that a command runs is code: when it is saved, what it made is stale', async () => {
    let before = dev.shown.length
    project.write('scripts/count.sh', 'echo 1')
    project.write('scripts/data.txt', '1')
    project.write(
      'assets/command.ts',
      "import { command } from 'servo-flow'\nexport const it = command('counted', { run: ['sh', 'scripts/count.sh'] })\n",
    )
    await dev.says(/loaded {2}1 asset changed in \d+ ms/, before)
    expect((await project.servo('run', 'counted')).code).toBe(0)
    const why = async () => (await project.json('partitions', 'why', 'counted')).causes
    expect(await why()).toEqual([])
    before = dev.shown.length
    project.write('scripts/data.txt', '2')
    project.write('scripts/count.sh', 'echo 2')
    await dev.says(/loaded {2}1 asset changed in \d+ ms/, before)
    expect(await why()).toEqual(['code_changed'])
  })

  const mistakes: [string, Record<string, string | null>, RegExp][] = [
    ['a syntax error', { 'assets/x.ts': 'export const x = [\n  1 2\n]\n' }, /error: assets\/x\.ts:2/],
    [
      'an error while loading',
      { 'assets/x.ts': '\n\nthrow new Error("no such table")\n' },
      /error: assets\/x\.ts:3\S* {2}.*no such table/,
    ],
    [
      'a duplicate key',
      { 'assets/x.ts': one('a') },
      /error: assets\/x\.ts:2 .*duplicate asset a: assets\/small\.ts:2 and assets\/x\.ts:2/,
    ],
    [
      'a missing dependency',
      { 'assets/x.ts': one('x', "deps: ['nowhere'],") },
      /error: assets\/x\.ts:2\S* {2}x depends on the unknown asset nowhere/,
    ],
    [
      'a cycle',
      { 'assets/x.ts': one('x', "deps: ['y'],"), 'assets/y.ts': one('y', "deps: ['x'],") },
      /error: assets\/[xy]\.ts:2\S* {2}.*x.*y/,
    ],
    ['no config', { 'servo.config.ts': null }, /error: no servo\.config\.ts in/],
  ]
  test.each(mistakes)(
    '%s is shown with its place; correct it and save; the last version that loaded stays in use and can be run',
    async (_, files, message) => {
      const before = dev.shown.length
      const good = Object.keys(files).map(
        (name) => [name, fs.existsSync(project.file(name)) ? fs.readFileSync(project.file(name), 'utf8') : null] as const,
      )
      const save = (name: string, text: string | null): void =>
        text === null ? project.remove(name) : project.write(name, text)
      for (const [name, text] of Object.entries(files)) save(name, text)
      await dev.says(/not loaded {2}correct it and save; the last version that loaded stays in use/, before)
      await dev.says(message, before)
      expect((await project.servo('run', 'b')).code).toBe(0)
      const broken = dev.shown.length
      for (const [name, text] of good) save(name, text)
      await dev.says(/ loaded {2}nothing changed/, broken)
    },
  )

  test('Ctrl-C ends it with 0, and no process is left', async () => {
    const all = [dev.pid, ...descendants(dev.pid)]
    dev.kill('SIGINT')
    const { code, stdout } = await dev.ended
    expect(code).toBe(0)
    expect(stdout).toMatch(/\nstopped\n$/)
    expect(all.length).toBeGreaterThan(1)
    expect(all.filter(isAlive)).toEqual([])
  })
})

/** Tasks that no polite request ends, until there is a file `go`. */
const STUBBORN = `import { spawn } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { asset } from 'servo-flow'

const go = () => existsSync('go')
export const ignores = asset('ignores', { run: async () => { while (!go()) await sleep(50) } })
export const blocks = asset('blocks', { run() { while (!go()); } })
export const forks = asset('forks', {
  async run() {
    const child = spawn('sleep', ['600'])
    spawn('sh', ['-c', 'trap "" INT TERM HUP; sleep 600 & wait'])
    writeFileSync('forked', String(child.pid))
    while (!go()) await sleep(50)
  },
})
`

describe('a server that ends', () => {
  /** Starts the run and waits until everything of it is under way, and known to be. */
  async function underWay(project: TestProject): Promise<{ dev: Servo; runId: string; processes: number[] }> {
    const dev = await project.dev()
    const runId = await project.request('ignores', 'blocks', 'forks')
    for (const key of ['ignores', 'blocks', 'forks']) await dev.says(new RegExp(` running +${key}\\n`))
    await until(() => fs.existsSync(project.file('forked')))
    const processes = [dev.pid, ...descendants(dev.pid)]
    expect(processes).toContain(Number(fs.readFileSync(project.file('forked'), 'utf8')))
    return { dev, runId, processes }
  }

  async function goesOn(project: TestProject, runId: string): Promise<void> {
    project.write('go')
    const dev = await project.dev()
    await dev.says(new RegExp(`${runId.slice(0, 12)} {2}succeeded .* 3 tasks\n`))
    const { attempts } = await project.shown(runId)
    for (const key of ['ignores', 'blocks', 'forks']) {
      const own = attempts.filter(({ task_key }) => task_key === key)
      expect(own.map(({ attempt, outcome }) => [attempt, outcome])).toEqual([
        [1, 'FAILED'],
        [2, 'SUCCEEDED'],
      ])
    }
  }

  test('[W1] by Ctrl-C takes every process along, also of tasks that ignore it, block or fork; the run goes on at the next start', async () => {
    const project = projectOf({ 'assets/stubborn.ts': STUBBORN })
    const { dev, runId, processes } = await underWay(project)
    const asked = performance.now()
    dev.kill('SIGINT')
    const { code, stdout } = await dev.ended
    expect(stdout).toMatch(/\nstopped; 3 tasks interrupted, which the next start runs again\n$/)
    expect(code).toBe(0)
    // Half a second when the machine is idle; a person who waits longer than this presses Ctrl-C again.
    expect(performance.now() - asked).toBeLessThan(10_000)
    expect(processes.filter(isAlive)).toEqual([])
    await goesOn(project, runId)
  })

  test('[W1] by kill -9 takes its only worker along, in which a task never yields', async () => {
    const project = projectOf({ 'assets/stubborn.ts': STUBBORN })
    const dev = await project.dev('--concurrency', '1')
    await project.request('blocks')
    await dev.says(/ running +blocks\n/)
    const workers = descendants(dev.pid)
    expect(workers).toHaveLength(1)
    dev.kill('SIGKILL')
    await dev.ended
    await until(() => !workers.some(isAlive), 'the worker to notice')
  })

  test('[W1] by kill -9 takes every process along too, and after a restart the run ends', async () => {
    const project = projectOf({ 'assets/stubborn.ts': STUBBORN })
    const { dev, runId, processes } = await underWay(project)
    dev.kill('SIGKILL')
    await dev.ended
    await until(() => !processes.some(isAlive), 'the workers to notice')
    await goesOn(project, runId)
  })
})

describe('servo dev that begins with a broken project', () => {
  test('shows what is wrong, and goes on when that is repaired', async () => {
    const project = projectOf({ 'assets/small.ts': SMALL, 'assets/x.ts': 'export const x = (\n' })
    const dev = await project.dev()
    await dev.says(/not loaded {2}correct it and save/)
    await dev.says(/error: assets\/x\.ts:\d/)
    const before = dev.shown.length
    project.remove('assets/x.ts')
    await dev.says(/ loaded {2}4 assets changed/, before)
    expect((await project.servo('run', 'a')).code).toBe(0)
  })

  test('keeps what was running before until it is repaired', async () => {
    const project = projectOf({ 'assets/stubborn.ts': STUBBORN })
    const first = await project.dev()
    const run_id = await project.request('ignores')
    await first.says(/ running +ignores\n/)
    first.kill('SIGKILL')
    await first.ended
    project.write('go')
    project.write('assets/x.ts', 'export const x = (\n')
    const dev = await project.dev()
    await dev.says(/ loaded|not loaded/)
    expect((await project.shown(run_id)).run['state']).toBe('RUNNING')
    project.remove('assets/x.ts')
    await dev.says(new RegExp(`${run_id.slice(0, 12)} {2}succeeded .* 1 task\n`))
  })
})

test('servo dev --run runs a selection first', async () => {
  const project = projectOf({ 'assets/small.ts': SMALL })
  const dev = await project.dev('--run', 'b', '--run', 'a')
  await dev.says(/succeeded .* 2 tasks\n/)
})

test('servo dev --json tells everything as a JSON object per line', async () => {
  const project = projectOf({ 'assets/small.ts': SMALL })
  const dev = project.begin(['dev', '--port', '0', '--json', '--run', 'a'])
  await dev.says(/"state":"SUCCEEDED".*\n/)
  project.write('assets/x.ts', 'export const x = (\n')
  await dev.says(/"ok":false.*\n/)
  dev.kill('SIGTERM')
  const { stdout, code } = await dev.ended
  const lines = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(lines[0]).toMatchObject({ type: 'ready', ok: true, project: 'shop', assets: 4, url: expect.stringMatching(/^http/) })
  expect(lines.map(({ type }) => type)).toEqual(expect.arrayContaining(['run', 'task', 'loaded']))
  expect(lines.find(({ type }) => type === 'loaded')).toMatchObject({ ok: false, problems: [{ file: 'assets/x.ts' }] })
  expect(lines.at(-1)).toEqual({ type: 'stopped', running: 0 })
  expect(code).toBe(0)
})
