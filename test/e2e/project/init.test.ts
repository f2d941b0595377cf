import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { servo } from '../support/servo.ts'
import { lacksTerminal, Terminal } from '../support/terminal.ts'

let dir = ''
beforeEach(() => {
  const made = fs.mkdtempSync(path.join(os.tmpdir(), 'servo-init-'))
  onTestFinished(() => fs.rmSync(made, { recursive: true, force: true, maxRetries: 5 }))
  dir = made
})

const FILES = [
  '.gitignore',
  'README.md',
  'assets/nightly.ts',
  'assets/orders.ts',
  'assets/revenue.test.ts',
  'assets/revenue.ts',
  'package.json',
  'servo.config.ts',
  'tsconfig.json',
]

const read = (name: string): string => fs.readFileSync(path.join(dir, name), 'utf8')
const write = (name: string, text: string): void => {
  fs.mkdirSync(path.dirname(path.join(dir, name)), { recursive: true })
  fs.writeFileSync(path.join(dir, name), text)
}
/** Stands for the installation, which takes a network. */
const install = (folder: string): void =>
  fs.symlinkSync(path.resolve(import.meta.dirname, '../../../node_modules'), path.join(dir, folder, 'node_modules'))

test('servo init makes a project whose assets and checks pass without an edit', async () => {
  const { code, stdout, stderr } = await servo(['init', 'shop', '--no-install', '--json'], { cwd: dir })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(JSON.parse(stdout)).toMatchObject({
    folder: path.join(dir, 'shop'),
    project: 'shop',
    wrote: FILES,
    left: [],
    installed: false,
  })
  expect(read('shop/servo.config.ts')).toContain("project: 'shop',\n  dirs: ['assets'],")
  const description = JSON.parse(read('shop/package.json'))
  expect(description).toMatchObject({
    name: 'shop',
    private: true,
    type: 'module',
    scripts: { dev: 'servo dev', test: 'node --test' },
  })
  expect(Object.keys(description.dependencies)).toEqual(['servo-flow', 'zod'])

  install('shop')
  const cwd = path.join(dir, 'shop')
  const ran = await servo(['run', '*', '--partition', '*'], { cwd })
  expect(ran.stdout).toMatch(/succeeded {2}run_\w+ {2}22 tasks .*\n {2}checks: 22 passed\n$/)
  expect((await servo(['schedules', 'list', '--json'], { cwd })).code).toBe(0)
  const again = await servo(['init', 'shop', '--yes'], { cwd: dir })
  expect(again).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringContaining('is already a Servo project: it has a servo.config.ts\nhint: '),
  })
})

test('servo init says what a package of CommonJS needs before the project runs', async () => {
  write('package.json', '{ "name": "web", "type": "commonjs" }')
  const { code, stdout, stderr } = await servo(['init', '--no-install', '--yes'], { cwd: dir })
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining('npm pkg set type=module') })
  expect(stdout).toMatch(/^done .*"type": "module"\. Next:\n {2}npm pkg set type=module\n {2}npm install\n {2}npx servo dev\n/m)
  expect(stdout).not.toMatch(/^ready/m)
  write('other/package.json', '{ "name": "other", "type": "commonjs" }')
  const json = await servo(['init', 'other', '--no-install', '--json'], { cwd: dir })
  const steps = ['cd other', 'npm pkg set type=module', 'npm install', 'npx servo dev', "npx servo run '*' --partition '*'"]
  expect(JSON.parse(json.stdout)).toMatchObject({ ready: false, next: steps })
  // Before that step, one problem says what to do, and Node adds nothing of its own.
  const run = await servo(['run', '*'], { cwd: dir })
  expect(run).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^error: servo\.config\.ts:1 .*\nhint: .*"type": "module".*\n$/),
  })
})

test('servo init adds to a package what it lacks, overwrites nothing, and says what it left', async () => {
  const own = '{\n\t"name": "web",\n\t"scripts": { "test": "vitest" },\n\t"devDependencies": { "typescript": "^5.9.0" }\n}\n'
  write('package.json', own)
  write('README.md', '# Mine\n')
  write('.gitignore', '/node_modules\n.servo\n')
  write('assets/logo.ts', 'throw new Error("not an asset of Servo")\n')
  const { code, stdout, stderr } = await servo(['init', '--no-install', '--name', 'web-data'], { cwd: dir })
  expect({ code, stderr }).toEqual({
    code: 0,
    stderr: expect.stringMatching(
      /^Git does not ignore \.env, \.env\.local here: .*\npackage\.json has no "type": "module"\. .*\n$/,
    ),
  })
  expect(stdout).toContain('wrote  servo/orders.ts\n')
  expect(stdout).toContain(
    'added  scripts.dev, scripts.check, dependencies.servo-flow, dependencies.zod, devDependencies.@types/node to package.json\nleft   scripts.test, devDependencies.typescript of package.json\nleft   .gitignore, README.md\n',
  )
  expect(stdout).toMatch(/Next:\n {2}npm install\n {2}npx servo dev\n/)
  expect(read('README.md')).toBe('# Mine\n')
  expect(read('package.json')).toMatch(/^\{\n\t"name": "web",\n\t"scripts": \{\n\t\t"test": "vitest",\n\t\t"dev": "servo dev"/)
  expect(read('servo.config.ts')).toContain("project: 'web-data',\n  dirs: ['servo'],")
  install('.')
  expect((await servo(['run', 'raw/regions'], { cwd: dir })).code).toBe(0)
})

test('servo init says so when the packages cannot be installed, and leaves the files', async () => {
  const cache = path.join(dir, 'cache')
  const env = { npm_config_registry: 'http://127.0.0.1:9/', npm_config_cache: cache, npm_config_fetch_retries: '0' }
  const { code, stdout, stderr } = await servo(['init', 'shop', '--yes'], { cwd: dir, env })
  expect(stderr).toMatch(/^installing packages with npm\nerror: npm install failed in .*\/shop:\n.*ECONNREFUSED/s)
  expect(stderr).toMatch(/\nhint: The project was created\. Solve this, then run npm install in .*\/shop\.\n$/)
  expect({ code, wrote: stdout.split('\n').length }).toEqual({ code: 3, wrote: FILES.length + 1 })
})

test.each([
  ['a name that npm refuses', ['x', '--name', 'My Shop'], /invalid project name 'My Shop'\nhint: Use lower-case/],
  [
    'assets outside of the project',
    ['x', '--assets', '../y'],
    /invalid folder for assets '\.\.\/y'\nhint: Use a folder inside/,
  ],
  [
    'a folder for assets with other characters',
    ['x', '--assets', 'ä b'],
    /invalid folder for assets 'ä b'\nhint: Use letters from A to Z/,
  ],
  ['a folder inside .git', ['.git/x'], /\/\.git\/x is inside \.git\nhint: Git keeps its own files there/],
  ['a package.json that is a list', ['listed'], /listed\/package\.json: it is not an object\nhint: Correct the file/],
  ['a file instead of a folder', ['file'], /\/file is not a folder\nhint: Choose another folder/],
  [
    'a package.json that is not JSON',
    ['broken'],
    /cannot add to .*broken\/package\.json:2:1: it is not valid JSON: unexpected "}"\nhint: /,
  ],
  [
    'a folder for assets with a very long name',
    ['x', '--assets', 'a'.repeat(300)],
    /the name of the folder for assets is too long for this disk\nhint: Choose a shorter one/,
  ],
  ['a very long name below a new folder', [`x/${'a'.repeat(300)}`], /the name of the folder is too long for this disk\nhint: /],
  [
    'a path that is too long as a whole',
    ['x', '--assets', 'abcdefg/'.repeat(600).slice(0, -1)],
    /too long for this disk\nhint: /,
  ],
  ['a very long project name', ['x', '--name', 'a'.repeat(300)], /invalid project name 'a{60}…'\nhint: /],
  [
    'assets below a file that exists',
    ['.', '--assets', 'file/assets'],
    /cannot be file\/assets, because file is a file\nhint: /,
  ],
  [
    'a folder below node_modules',
    ['node_modules/x'],
    /\/node_modules\/x is below node_modules\nhint: Node runs no TypeScript there/,
  ],
  ['assets in the place of a file of the project', ['x', '--assets', 'README.md'], /because README\.md is a file\nhint: /],
])('%s is refused, and nothing is written', async (_, args, message) => {
  write('file', '')
  write('broken/package.json', '{ "name": \n}')
  write('listed/package.json', '[]')
  const { code, stdout, stderr } = await servo(['init', ...args, '--yes'], { cwd: dir })
  expect(stderr).toMatch(message)
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(fs.readdirSync(dir, { recursive: true }).sort()).toEqual([
    ...['broken', 'broken/package.json', 'file'],
    ...['listed', 'listed/package.json'],
  ])
})

test('servo init refuses a folder or a broken link in the place of a file, reads a byte order mark, and quotes the folder', async () => {
  fs.mkdirSync(path.join(dir, 'shop/tsconfig.json'), { recursive: true })
  const blocked = await servo(['init', 'shop', '--yes'], { cwd: dir })
  expect(blocked).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('tsconfig.json is a folder, or a link to nowhere, where a file should be\n'),
  })
  expect(fs.readdirSync(path.join(dir, 'shop'))).toEqual(['tsconfig.json'])
  write("it's/package.json", '\uFEFF{ "name": "web" }')
  const made = await servo(['init', "it's", '--yes', '--no-install'], { cwd: dir })
  expect(made).toMatchObject({ code: 0, stdout: expect.stringContaining(`\n  cd 'it'\\''s'\n`) })
  expect(JSON.parse(read("it's/package.json"))).toMatchObject({ name: 'web', scripts: { dev: 'servo dev' } })
})

test('a file that cannot be written leaves nothing half-written', async () => {
  write('package.json', '{ "name": "web" }')
  fs.symlinkSync('nowhere', path.join(dir, 'linked'))
  const { code, stdout, stderr } = await servo(['init', '--yes', '--assets', 'linked'], { cwd: dir })
  expect(stderr).toMatch(/\/linked cannot be written: EEXIST.*\nhint: A file is where a folder should be/)
  expect({ code, stdout }).toEqual({ code: 3, stdout: '' })
  expect(fs.readdirSync(dir).sort()).toEqual(['linked', 'package.json'])
  expect(read('package.json')).toBe('{ "name": "web" }')
})

describe.skipIf(lacksTerminal)('on a terminal', () => {
  test('servo init asks for what no flag says, with the defaults in brackets', async () => {
    const played = new Terminal(['init', '--no-install'], dir)
    await played.shows(/Project folder\? \(\.\) /)
    played.type('My Shop\r')
    await played.shows(/Project name\? \(my-shop\) /)
    played.type('\r')
    await played.shows(/Folder for assets\? \(assets\) /)
    played.type('pipelines/daily\r')
    expect(await played.ended).toBe(0)
    expect(played.screen.join('\n').replace(/in \d+\.\d s/, 'in 0.1 s')).toBe(`Project folder? (.) My Shop
Project name? (my-shop) 
Folder for assets? (assets) pipelines/daily
wrote  My Shop/.gitignore
wrote  My Shop/README.md
wrote  My Shop/package.json
wrote  My Shop/pipelines/daily/nightly.ts
wrote  My Shop/pipelines/daily/orders.ts
wrote  My Shop/pipelines/daily/revenue.test.ts
wrote  My Shop/pipelines/daily/revenue.ts
wrote  My Shop/servo.config.ts
wrote  My Shop/tsconfig.json
ready  in 0.1 s. Next:
  cd 'My Shop'
  npm install
  npx servo dev
  npx servo run '*' --partition '*'   (in another terminal)
`)
    expect(read('My Shop/README.md')).toContain('`pipelines/daily/orders.ts`')
  })

  test('Ctrl-C before the last answer writes nothing', async () => {
    const played = new Terminal(['init', 'shop'], dir)
    await played.shows(/Project name\? \(shop\) /)
    played.type('\u0003')
    expect(await played.ended).toBe(130)
    expect(fs.readdirSync(dir)).toEqual([])
  })
})
