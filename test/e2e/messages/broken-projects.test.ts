import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { expectFile } from '../support/golden-text.ts'
import { TestProject } from '../support/project.ts'
import { Session } from '../support/session.ts'

const CONFIG = "import { defineConfig } from 'servo-flow'\nexport default defineConfig({ project: 'shop', dirs: ['assets'] })\n"
const GOOD = "import { asset } from 'servo-flow'\nexport const good = asset('good', { run: () => 1 })\n"
const sdk = (names: string, text: string): string => `import { ${names} } from 'servo-flow'\n${text}\n`
const zod = "import { z } from 'zod'\n"
const schema = 'z.object({ id: z.number() })'

/** What is wrong, and the files that are so. A file that is not named is as in a good project; null leaves it out. */
const BROKEN: readonly (readonly [string, Readonly<Record<string, string | null>>])[] = [
  ['no config', { 'servo.config.ts': null }],
  ['a config without a default export', { 'servo.config.ts': 'export const config = 1\n' }],
  ['a misspelled field of the config', { 'servo.config.ts': "export default { project: 'shop', dir: ['assets'] }\n" }],
  ['dirs that are no list', { 'servo.config.ts': "export default { project: 'shop', dirs: 'assets' }\n" }],
  ['a folder that does not exist', { 'servo.config.ts': "export default { project: 'shop', dirs: ['asets'] }\n" }],
  ['a pool of no size', { 'servo.config.ts': "export default { project: 'shop', dirs: ['assets'], pools: { api: 0 } }\n" }],
  ['a project name with a space', { 'servo.config.ts': "export default { project: 'my shop', dirs: ['assets'] }\n" }],
  ['a syntax error in the config', { 'servo.config.ts': "export default {\n  project: = 'shop'\n}\n" }],
  ['no asset', { 'assets/good.ts': null, 'assets/a.ts': 'export const nothing = 1\n' }],
  ['a syntax error', { 'assets/a.ts': 'export const list = [\n  1 2\n]\n' }],
  ['an enum', { 'assets/a.ts': 'enum Color { Red }\nexport { Color }\n' }],
  [
    'an import without its extension',
    { 'assets/a.ts': "import { rate } from './rate'\nexport { rate }\n", 'assets/rate.ts': 'export const rate = 1\n' },
  ],
  ['an import of a file that does not exist', { 'assets/a.ts': "import { rate } from '../lib/rate.ts'\nexport { rate }\n" }],
  ['a package that is not installed', { 'assets/a.ts': "import pad from 'left-pad-nope/x'\nexport { pad }\n" }],
  [
    'an export that does not exist',
    { 'assets/a.ts': "import { rat } from '../lib/rate.ts'\nexport { rat }\n", 'lib/rate.ts': 'export const rate = 1\n' },
  ],
  ['an export that Servo does not have', { 'assets/a.ts': sdk('assets', 'export { assets }') }],
  ['a module that throws', { 'assets/a.ts': "throw new Error('no database')\n" }],
  [
    'a module that throws and is imported by others',
    {
      'assets/a.ts': "import { connect } from '../lib/connect.ts'\nexport const client = connect\n",
      'assets/b.ts': "import './a.ts'\n",
      'lib/connect.ts': "import { open } from './open.ts'\nexport const connect = open('db')\n",
      'lib/open.ts': 'export const open = (name: string) => {\n  throw new TypeError(name)\n}\n',
    },
  ],
  ['a module that throws a text', { 'assets/a.ts': "import '../lib/b.ts'\n", 'lib/b.ts': "throw 'no database'\n" }],
  [
    'a module that waits for something that never comes',
    {
      'assets/a.ts': "import { token } from '../lib/token.ts'\nexport { token }\n",
      'lib/token.ts': 'const settings = {}\nexport const token = await new Promise(() => {})\nexport { settings }\n',
    },
  ],
  [
    'modules that import each other',
    {
      'assets/a.ts': sdk('asset', "import { b } from './b.ts'\nexport const a = asset('a', { deps: [b], run: () => 1 })"),
      'assets/b.ts': sdk('asset', "import { a } from './a.ts'\nexport const b = asset('b', { deps: [a], run: () => 1 })"),
    },
  ],
  ['a package.json that is not JSON', { 'package.json': '{ "type": "module", }' }],
  ['a package of CommonJS', { 'package.json': '{ "type": "commonjs" }' }],
  ['a key with a space', { 'assets/a.ts': sdk('asset', "export const a = asset('bad key!', { run: () => 1 })") }],
  [
    'two assets whose keys differ only in case',
    { 'assets/a.ts': sdk('asset', "export const a = asset('Good', { run: () => 1 })") },
  ],
  ['two assets with one key', { 'assets/a.ts': sdk('asset', "export const a = asset('good', { run: () => 1 })") }],
  ['an asset without a body', { 'assets/a.ts': sdk('asset', "export const a = asset('a', {})") }],
  ['an unknown option', { 'assets/a.ts': sdk('asset', "export const a = asset('a', { retries: 3, run: () => 1 })") }],
  [
    'a timeout that is no duration',
    { 'assets/a.ts': sdk('asset', "export const a = asset('a', { timeout: 'soon', run: () => 1 })") },
  ],
  ['a table without a schema', { 'assets/a.ts': sdk('table', "export const a = table('a', { run: () => [] })") }],
  [
    'an upstream asset that does not exist',
    { 'assets/a.ts': sdk('asset', "export const a = asset('a', { deps: ['goood', 'other'], run: () => 1 })") },
  ],
  [
    'a circle of assets',
    {
      'assets/a.ts': sdk(
        'asset',
        "export const a = asset('a', { deps: ['b'], run: () => 1 })\nexport const b = asset('b', { deps: ['a'], run: () => 1 })",
      ),
    },
  ],
  [
    'a pool that the config does not have',
    { 'assets/a.ts': sdk('asset', "export const a = asset('a', { pool: 'api', run: () => 1 })") },
  ],
  [
    'partitions that do not match',
    {
      'assets/a.ts': sdk(
        'asset, daily, keys',
        "export const days = asset('days', { partitions: daily({ start: '2025-01-01' }), run: () => 1 })\nexport const a = asset('a', { partitions: keys(['eu', 'us']), inputs: { days }, run: () => 1 })",
      ),
    },
  ],
  [
    'a start that is no date',
    {
      'assets/a.ts': sdk(
        'asset, daily',
        "export const a = asset('a', { partitions: daily({ start: '2025-02-30' }), run: () => 1 })",
      ),
    },
  ],
  [
    'a command that lists files that do not exist',
    { 'assets/a.ts': sdk('command', "export const a = command('a', { run: ['python', 'x.py'], files: ['ml/*.py'] })") },
  ],
  [
    'a NUL in the command line of a command',
    { 'assets/a.ts': sdk('command', "export const a = command('a', {\n  run: ['sh', '-c', 'echo \\0'],\n})") },
  ],
  [
    'a cron expression that is none',
    { 'assets/a.ts': sdk('schedule', "export const nightly = schedule('nightly', { cron: '0 25 * * *', select: ['good'] })") },
  ],
  [
    'a time zone that is none',
    {
      'assets/a.ts': sdk(
        'schedule',
        "export const nightly = schedule('nightly', { cron: '0 5 * * *', timezone: '+05:30', select: ['good'] })",
      ),
    },
  ],
  [
    'a schedule of an unknown asset',
    { 'assets/a.ts': sdk('schedule', "export const nightly = schedule('nightly', { cron: '0 5 * * *', select: ['god'] })") },
  ],
  [
    'a schedule with an offset but no windows',
    {
      'assets/a.ts': sdk(
        'schedule',
        "export const nightly = schedule('nightly', { cron: '0 5 * * *', offset: 1, select: ['good'] })",
      ),
    },
  ],
  [
    'a schedule of partitions that do not exist',
    {
      'assets/a.ts': sdk(
        'schedule',
        "export const nightly = schedule('nightly', { cron: '0 5 * * *', partitions: ['2025-01-01'], select: ['good'] })",
      ),
    },
  ],
  [
    'a sensor without a source',
    { 'assets/a.ts': sdk('sensor', "export const inbox = sensor.push('inbox', { on: () => [] })") },
  ],
  [
    'a webhook without a secret',
    {
      'assets/a.ts':
        zod +
        sdk(
          'sensor, webhook',
          `export const inbox = sensor.push('inbox', { source: webhook({ path: 'in', verify: 'github', schema: ${schema} }), on: () => [] })`,
        ),
    },
  ],
  [
    'two webhooks at one path',
    {
      'assets/a.ts':
        zod +
        sdk(
          'sensor, webhook',
          `const source = webhook({ path: 'in', verify: 'none', schema: ${schema} })\nexport const all = ['one', 'two'].map((name) => sensor.push(name, { source, on: () => [] }))`,
        ),
    },
  ],
  [
    'options that do not work yet',
    { 'assets/a.ts': sdk('asset, when', "export const a = asset('a', { automation: when.eager(), run: () => 1 })") },
  ],
]

/** Each is found by `servo check`, which ends with 1. */
const CHECKED: readonly (readonly [string, Readonly<Record<string, string | null>>])[] = [
  ['a module that ends the process', { 'assets/a.ts': "console.error('bye')\nprocess.exit(7)\n" }],
  [
    'a query with an unknown column and a variable that is not set',
    {
      'assets/a.ts':
        zod +
        sdk(
          'resource, sql, table',
          `export const orders = table('orders', { schema: ${schema}, run: () => [] })
const api = resource('shop-api', { config: z.object({ url: z.string() }), open: ({ url }) => url })
export const ids = table('ids', { schema: ${schema}, inputs: { orders }, resources: { api }, sql: () => sql\`select idd as id from orders\` })`,
        ),
    },
  ],
]

const projects: TestProject[] = []
afterAll(async () => {
  for (const each of projects) await each.end()
})

function projectWith(files: Readonly<Record<string, string | null>>): TestProject {
  const all = { 'servo.config.ts': CONFIG, 'assets/good.ts': GOOD, ...files }
  const project = new TestProject(Object.fromEntries(Object.entries(all).map(([name, text]) => [name, text ?? ''])))
  for (const [name, text] of Object.entries(all)) if (text === null) project.remove(name)
  projects.push(project)
  return project
}

/** A project, what is wrong with it, and what a user reads. Frames of this test are no part of that. */
const entry = (what: string, dir: string, text: string): string =>
  `# ${what}\n${text
    .replaceAll(/\n.*load-projects\.ts.*/g, '')
    .replaceAll(fs.realpathSync(dir), '/shop')
    .replaceAll(dir, '/shop')}\n`

test('each broken project is refused with what is wrong, where, and what to do', async () => {
  const broken = BROKEN.map(([what, files]) => ({ what, dir: projectWith(files).dir }))
  const script = path.resolve(import.meta.dirname, '../support/load-projects.ts')
  const { stdout, stderr } = spawnSync(process.execPath, [script, ...broken.map(({ dir }) => dir)], { encoding: 'utf8' })
  expect(stdout, stderr).not.toBe('')
  const shown: string[][] = JSON.parse(stdout)
  expect(shown).toHaveLength(broken.length)
  const entries = broken.map(({ what, dir }, i) => entry(what, dir, (shown[i] ?? []).join('\n')))
  for (const text of entries) expect.soft(text).toMatch(/\nerror: /)
  const session = new Session()
  try {
    for (const [what, files] of CHECKED) {
      const { dir } = projectWith(files)
      const { code, stdout: said } = await session.servo(dir, 'check')
      expect.soft(code, said).toBe(1)
      entries.push(entry(`${what}: servo check`, dir, `${said}exit code ${code}`))
    }
  } finally {
    session.end()
  }
  expectFile(path.join(import.meta.dirname, 'broken-projects.txt'), entries.join('\n'))
})
