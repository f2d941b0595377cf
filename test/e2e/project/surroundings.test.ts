import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { expect, inject, test } from 'vitest'
import { projectOf } from '../support/project.ts'
import { servo } from '../support/servo.ts'

const ONE = `import { asset } from 'servo-flow'\nexport const a = asset('a', { run: () => 1 })\n`

/** Versions of Node on this machine that are too old for Servo. */
function oldNodes(): string[] {
  const nodes = (process.env['PATH'] ?? '').split(path.delimiter).map((folder) => path.join(folder, 'node'))
  const versionOf = (node: string): string => spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout ?? ''
  return [...new Set(nodes)].filter((node) => fs.existsSync(node) && /^v(1[6-9]|2[01])\./.test(versionOf(node)))
}

test('an older Node is told what Servo needs, in words and in JSON', async () => {
  const project = projectOf({ 'assets/one.ts': ONE })
  project.write('older.cjs', `Object.defineProperty(process, 'version', { value: 'v22.17.1' })`)
  const older = { NODE_OPTIONS: `--require ${project.file('older.cjs')}` }
  const words = await project.begin(['run', 'a'], older).ended
  expect(words).toEqual({
    code: 3,
    stdout: '',
    stderr: `error: Servo needs Node 22.18 or newer; this is v22.17.1\nhint: Install Node 24 (https://nodejs.org, or your version manager: nvm install 24) and run it again.\n`,
  })
  const json = await project.begin(['run', 'a', '--json'], older).ended
  expect(JSON.parse(json.stderr)).toMatchObject({ error: { kind: 'unavailable', code: 'node_too_old' } })
  // Also one that cannot parse the rest of the package.
  for (const node of oldNodes()) {
    const { code, stderr } = await servo(['--version'], { node })
    expect(stderr).toMatch(/^error: Servo needs Node 22\.18 or newer; this is v\d+\.\d+\.\d+\nhint: .*\n$/)
    expect(code).toBe(3)
  }
  const { engines } = JSON.parse(fs.readFileSync(path.resolve(inject('servoMain'), '../../../package.json'), 'utf8'))
  expect(engines.node).toBe('>=22.18')
})

test('a package.json that is not JSON is named, with line and column', async () => {
  const project = projectOf({ 'assets/one.ts': ONE })
  project.write('package.json', '{\n  "type": "module"\n  "scripts": {}\n}\n')
  const { code, stderr } = await project.servo('run', 'a')
  expect(stderr).toBe(
    `error: package.json:3:3  not valid JSON: unexpected "\\""\nhint: Correct it. Node reads it to load the modules in this folder and below.\n`,
  )
  expect(code).toBe(2)
  // Nothing was ever loaded, so there is no last version to show.
  const listed = await project.asked('assets', 'list')
  expect(listed).toMatchObject({
    code: 2,
    stdout: '',
    stderr: `error: the project cannot be loaded: package.json:3 not valid JSON: unexpected "\\""\nhint: Correct that first. servo check lists every problem.\n`,
  })
  expect((await project.servo('check')).stdout).toContain('not checked: types: package.json cannot be read\n')
  project.write('package.json', '{}')
  project.write('assets/package.json', '{\n  "type": ')
  const below = await project.servo('run', 'a', '--json')
  expect(JSON.parse(below.stderr).error.problems).toMatchObject([
    {
      code: 'bad_package_json',
      file: 'assets/package.json',
      line: 2,
      column: 11,
      message: expect.stringContaining('it ends too soon'),
    },
  ])
})

test('npm run servo works on the project in whose folder it is called', () => {
  const shop = path.resolve(import.meta.dirname, '../../../examples/shop')
  const { stdout, stderr } = spawnSync('npm', ['run', '--silent', 'servo', '--', 'assets', 'list'], {
    cwd: shop,
    encoding: 'utf8',
  })
  // It may have run before, or not.
  expect(stdout + stderr).toMatch(/^asset .*\n.*raw\/orders|examples\/shop\/\.servo yet/s)
})
