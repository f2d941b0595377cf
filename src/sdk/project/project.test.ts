import { execFile } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { AssetDefinition, ProjectManifest, ProjectProblem } from '../../contract/project-manifest.ts'
import { LoadingProcess } from '../../testing/loading-process.ts'

const scratch = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'servo-project-')))
afterAll(() => fs.rmSync(scratch, { recursive: true, force: true }))

type Files = Readonly<Record<string, string>>
type Loaded = { problems?: ProjectProblem[]; manifest?: ProjectManifest; names?: Record<string, string[]>; ran?: unknown }

const config = "import { defineConfig } from 'servo-flow'\nexport default defineConfig({ project: 'shop', dirs: ['assets'] })\n"

function write(files: Files): string {
  const into = fs.mkdtempSync(path.join(scratch, 'p-'))
  for (const [name, text] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(into, name)), { recursive: true })
    fs.writeFileSync(path.join(into, name), text)
  }
  return into
}

const loader = `
const { loadProject } = await import(process.argv[1])
const project = await loadProject(process.argv[2])
const names = Object.fromEntries(['assets', 'resources', 'schedules', 'sensors'].map((kind) => [kind, [...(project[kind]?.keys() ?? [])]]))
const ran = process.argv[3] && project.assets && await eval(process.argv[3])(project)
console.log('\\n' + JSON.stringify({ problems: project.problems, manifest: project.manifest, names, ran }))`

const module = new URL('./project.ts', import.meta.url).href

/** Loads a project in a process of its own, as commands do. */
async function loadAlone(dir: string, then = ''): Promise<Loaded & { stderr: string }> {
  const flags = ['--input-type=module', '--eval', loader, module, dir, then]
  const { stdout, stderr } = await promisify(execFile)(process.execPath, flags, { cwd: scratch })
  return { ...(JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Loaded), stderr }
}

let loading: LoadingProcess
beforeAll(() => {
  loading = new LoadingProcess(module, scratch)
})
afterAll(() => loading.end())

/** Loads a project in the process of the others. */
const load = async (dir: string): Promise<Loaded> => (await loading.load(dir)) as Loaded

/** The problems of a project with these assets. */
async function problemsOf(assets: Files): Promise<ProjectProblem[]> {
  const named = Object.entries(assets).map(([name, text]) => [name.includes('.config.') ? name : `assets/${name}`, text])
  return (await load(write({ 'servo.config.ts': config, ...Object.fromEntries(named) }))).problems ?? []
}

const one = (key: string, name = 'one', options = ''): string =>
  `import { asset } from 'servo-flow'\nexport const ${name} = asset('${key}', { ${options} run: () => 1 })\n`

describe('a project', () => {
  test('declares what its modules export, also in lists and objects, once however often it is exported', async () => {
    const dir = write({
      'servo.config.mjs': config,
      'assets/a.ts': one('a', 'a'),
      'assets/deep/b.mts':
        "import { a } from '../a.ts'\nimport { asset } from 'servo-flow'\nexport { a }\nexport const list = [asset('b', { deps: [a], run: () => 1 })]\n",
      'assets/c.js':
        "import { asset } from 'servo-flow'\nexport default { more: { c: asset('c', { deps: ['b'], run: () => 1 }) } }\n",
      'assets/d.test.ts': one('in-a-test'),
      'assets/types.d.ts': 'export declare const nothing: number\n',
      'assets/node_modules/x/index.js': one('in-a-package'),
      'assets/.hidden/x.ts': one('hidden'),
    })
    const { problems, manifest, stderr } = await loadAlone(dir)
    expect(problems).toBeUndefined()
    expect(manifest?.assets.map(({ asset_key, file, line }) => [asset_key, file, line])).toEqual([
      ['a', 'assets/a.ts', 2],
      ['b', 'assets/deep/b.mts', 4],
      ['c', 'assets/c.js', 2],
    ])
    expect(stderr, 'a project without package.json is no reason for warnings').toBe('')
  })

  test('may be the sample shop', async () => {
    const shop = path.resolve(import.meta.dirname, '../../../test/sdk/shop')
    const { names, manifest } = await loadAlone(shop)
    expect(names).toEqual({
      assets: expect.arrayContaining(['raw/orders', 'mart/revenue', 'mart/headline', 'ml/forecast']),
      resources: ['shop-api'],
      schedules: ['nightly'],
      sensors: ['corrections', 'late-files'],
    })
    const revenue = manifest?.assets.find((asset) => asset.asset_key === 'mart/revenue')
    expect(revenue).toMatchObject({
      kind: 'table',
      io: 'parquet',
      inputs: {
        orders: { asset_key: 'raw/orders', mapping: { type: 'dimension', dimension: 'day', mapping: { type: 'identity' } } },
      },
      partitions: { type: 'daily', start: '2025-01-01', timezone: 'Europe/Paris' },
      checks: [{ name: 'never negative', severity: 'error' }],
    })
  })

  test('has its assets run by the copy of the package that loaded it', async () => {
    const dir = write({
      'servo.config.ts': config,
      'assets/a.ts':
        "import { asset } from 'servo-flow'\nexport const a = asset('a', { run: async () => (await import('./late.ts')).late })\n",
      'assets/late.ts':
        "import { Fatal } from 'servo-flow'\nimport { materialize } from 'servo-flow/test'\nexport const late = [Fatal.name, materialize.name]\n",
    })
    const run = "async (project) => (await (await import('servo-flow/test')).materialize(project.assets.get('a'))).value"
    expect((await loadAlone(dir, run)).ran).toEqual(['Fatal', 'materialize'])
  })

  test('finds an asset that a function made where that function was called', async () => {
    const { manifest } = await load(
      write({
        'servo.config.ts': config,
        'assets/many.ts':
          "import { make } from '../factory.ts'\n\nexport const all = ['a', 'b'].map((key) =>\n  make(key),\n)\n",
        'factory.ts':
          "import { asset } from 'servo-flow'\nexport const make = (key: string) => asset(key, { run: () => key })\n",
      }),
    )
    expect(manifest?.assets.map(({ file }) => file)).toEqual(['assets/many.ts', 'assets/many.ts'])
  })
})

describe('the version of an asset', () => {
  const files = {
    'servo.config.ts': config,
    'assets/a.ts': `import { rate } from '../lib/rate.ts'\nimport { name } from 'dep'\n${one('a', 'a')}export const used = [rate, name]\n`,
    'assets/b.ts': one('b', 'b'),
    'assets/c.ts': one('c', 'c', "version: 'mine',"),
    'assets/d.ts': "import { asset } from 'servo-flow'\nexport const d = asset('d', { run: () => import('../lib/late.ts') })\n",
    'lib/rate.ts': "import { digits } from './digits.ts'\nexport const rate = 2 * digits\n",
    'lib/digits.ts': 'export const digits = 2\n',
    'lib/late.ts': 'export const late = 1\n',
    'node_modules/dep/package.json': '{ "name": "dep", "version": "1.0.0", "main": "index.js" }',
    'node_modules/dep/index.js': "exports.name = require('inner')",
    'node_modules/inner/package.json': '{ "name": "inner", "version": "1.0.0", "main": "index.js" }',
    'node_modules/inner/index.js': "module.exports = 'inner'",
  }
  const versions = async (dir: string): Promise<Record<string, string>> => {
    const assets: AssetDefinition[] = (await load(dir)).manifest?.assets ?? []
    return Object.fromEntries(assets.map((asset) => [asset.asset_key, asset.code_version ?? '']))
  }

  test('changes with its module, with what that imports and with the version of packages, and with nothing else', async () => {
    const before = await versions(write(files))
    expect(before).toMatchObject({ a: expect.stringMatching(/^[0-9a-f]{16}$/), c: 'mine' })
    expect(await versions(write(files)), 'the same code elsewhere').toEqual(before)
    const changedBy = async (name: string, text: string): Promise<string[]> => {
      const after = await versions(write({ ...files, [name]: text }))
      return Object.keys(after).filter((key) => after[key] !== before[key])
    }
    expect(await changedBy('lib/digits.ts', 'export const digits = 3\n')).toEqual(['a'])
    expect(await changedBy('assets/b.ts', `${one('b', 'b')}// more\n`)).toEqual(['b'])
    expect(await changedBy('assets/c.ts', `${one('c', 'c', "version: 'mine',")}// more\n`)).toEqual([])
    expect(await changedBy('lib/late.ts', 'export const late = 2\n')).toEqual(['d'])
    expect(await changedBy('node_modules/dep/index.js', "exports.name = 'patched'")).toEqual([])
    expect(
      await changedBy('node_modules/dep/package.json', '{ "name": "dep", "version": "1.0.1", "main": "index.js" }'),
    ).toEqual(['a'])
  })
})

describe('the version of a command', () => {
  const files = {
    'servo.config.ts': config,
    'assets/train.ts': `import { command } from 'servo-flow'
export const train = command('train', { run: ['python', 'train.py', '--config=conf/train.yml', '--out', 'big.bin', '../train.py', '.env', (p) => 'other.py'], files: ['conf/*.sql', 'lib'] })
export const nested = command('nested', { cwd: 'ml', run: ['sh', 'run.sh'], files: ['ml/**/*.r'] })
`,
    'train.py': 'print(1)',
    'other.py': 'print(1)',
    'conf/train.yml': 'a: 1',
    'conf/a.sql': 'select 1',
    'conf/note.txt': 'x',
    'lib/deep/x.py': 'x = 1',
    'lib/.cache/x': 'x',
    'big.bin': 'x'.repeat(2 ** 20 + 1),
    '.env': 'A=1',
    'ml/run.sh': 'true',
    'ml/sub/x.r': 'x',
    'run.sh': 'false',
  }

  test('changes with the files that its command line names and those that it lists, and with nothing else', async () => {
    const versions = async (changed: Files = {}): Promise<Record<string, string | null | undefined>> => {
      const { manifest, problems } = await load(write({ ...files, ...changed }))
      expect(problems).toBeUndefined()
      return Object.fromEntries((manifest?.assets ?? []).map(({ asset_key, code_version }) => [asset_key, code_version]))
    }
    const before = await versions()
    const { manifest } = await load(write(files))
    expect(manifest?.code_files).toEqual(['conf/*.sql', 'conf/train.yml', 'lib', 'ml/**/*.r', 'ml/run.sh', 'train.py'])
    const changedBy = async (name: string, text: string): Promise<string[]> => {
      const after = await versions({ [name]: text })
      return Object.keys(after).filter((key) => after[key] !== before[key])
    }
    for (const name of ['train.py', 'conf/train.yml', 'conf/a.sql', 'conf/new.sql', 'lib/deep/x.py'])
      expect(await changedBy(name, '2'), name).toEqual(['train'])
    for (const name of ['ml/run.sh', 'ml/sub/x.r']) expect(await changedBy(name, '2'), name).toEqual(['nested'])
    const others = ['other.py', 'conf/note.txt', 'lib/.cache/x', '.env', 'run.sh', 'big.bin']
    const changed = Object.fromEntries(others.map((name) => [name, name === 'big.bin' ? 'y'.repeat(2 ** 20 + 1) : '2']))
    expect(await versions(changed)).toEqual(before)
  })

  test('is refused when it lists files that are not there', async () => {
    const command = (files: string): string =>
      `import { command } from 'servo-flow'\nexport const c = command('c', { run: ['true'], files: ['${files}'] })\n`
    expect(await problemsOf({ 'a.ts': command('ml/*.py') })).toEqual([
      expect.objectContaining({
        code: 'missing_file',
        message: 'files of c: no file matches ml/*.py',
        file: 'assets/a.ts',
        line: 2,
      }),
    ])
  })
})

describe('a project without a usable config', () => {
  test('is told what to create', async () => {
    const { problems } = await load(write({ 'assets/a.ts': one('a') }))
    expect(problems).toEqual([
      { code: 'missing_config', message: expect.stringContaining('no servo.config.ts'), hint: expect.any(String) },
    ])
    expect(problems?.[0]?.hint).toContain("export default defineConfig({\n  project: 'shop',")
  })

  test.each([
    ['no default export', 'export const x = 1\n', /no default export/],
    ['a misspelled field', "export default { project: 'shop', dir: ['assets'] }\n", /the config: unknown option `dir`/],
    ['no folders', "export default { project: 'shop', dirs: 'assets' }\n", /`dirs` of the config cannot be "assets"/],
    [
      'a pool without a size',
      "export default { project: 'shop', dirs: ['assets'], pools: { api: 0 } }\n",
      /the limit of pool api cannot be 0/,
    ],
    ['no name', "export default { dirs: ['assets'] }\n", /^the config has no project name$/],
    [
      'an invalid name',
      "export default { project: 'my shop', dirs: ['assets'] }\n",
      /"my shop" is not a valid name for a project/,
    ],
  ])('is told of %s', async (_, text, message) => {
    const { problems } = await load(write({ 'servo.config.ts': text, 'assets/a.ts': one('a') }))
    expect(problems).toMatchObject([{ code: 'bad_config', message: expect.stringMatching(message), file: 'servo.config.ts' }])
  })

  test('is asked whether another field was meant', async () => {
    const { problems } = await load(write({ 'servo.config.ts': "export default { project: 'shop', dir: ['assets'] }\n" }))
    expect(problems?.[0]?.hint).toMatch(/^Did you mean `dirs`\? Options: project, dirs, /)
  })

  test('is told of a folder that is not there, and of a syntax error in the config', async () => {
    expect((await load(write({ 'servo.config.ts': config }))).problems).toMatchObject([{ code: 'missing_folder' }])
    const broken = await load(write({ 'servo.config.ts': 'export default {\n  project: = 1\n}\n' }))
    expect(broken.problems).toMatchObject([{ code: 'syntax_error', file: 'servo.config.ts', line: 2 }])
  })
})

describe('a module that cannot be loaded', () => {
  test('is told which package.json makes Node read it as a script, and how to change that', async () => {
    const folder = write({ 'servo.config.ts': `import 'node:fs'\n${config}`, 'package.json': '{ "type": "commonjs" }' })
    const { problems, stderr } = await loadAlone(folder)
    expect(stderr, 'the warning of Node is not shown beside it').not.toContain('Failed to load the ES module')
    expect(problems).toMatchObject([
      {
        ...{ code: 'not_a_module', file: 'servo.config.ts', line: 1 },
        hint: 'Node takes this file for a script. Run npm pkg set type=module.',
      },
    ])
  })

  test('is named with the line, whatever is wrong with it, and all of them at once', async () => {
    const problems = await problemsOf({
      'a.ts': 'const x: number = 1\nexport const y = = 2\n',
      'b.ts': 'const x = 1\n\nenum Color { Red }\nexport { Color }\n',
      'c.mjs': 'const x = 1\nfoo bar\n',
      'd.ts': "\nthrow new Error('no database')\n",
      'e.ts': "const a = 1\nimport { f } from './f'\nexport { a, f }\n",
      'f.ts': "import pad from 'left-pad-nope/x'\nexport const f = pad\n",
      'g.ts': "import { Nothing } from './good.ts'\nexport const g: Nothing = 1\n",
      'good.ts': 'export interface Nothing {}\nexport const ok = 1\n',
      'h.ts': one('bad key!', 'h'),
      'i.ts': "import './d.ts'\n",
      'j.ts': "import './a.ts'\n",
      'k.ts': "import '../lib/broken.mjs'\n",
      '../lib/broken.mjs': '\n\n(1\n',
    })
    expect(problems.map(({ code, file, line }) => [code, file, line])).toEqual([
      ['syntax_error', 'assets/a.ts', 2],
      ['unsupported_typescript', 'assets/b.ts', 3],
      ['syntax_error', 'assets/c.mjs', 2],
      ['load_failed', 'assets/d.ts', 2],
      ['missing_import', 'assets/e.ts', 2],
      ['missing_import', 'assets/f.ts', 1],
      ['missing_import', 'assets/g.ts', 1],
      ['invalid_definition', 'assets/h.ts', 2],
      ['syntax_error', 'lib/broken.mjs', 4],
    ])
    const hints = Object.fromEntries(problems.map(({ file, hint }) => [file?.slice('assets/'.length), hint]))
    expect(problems[0]?.message).toContain('export const y = = 2')
    expect(hints['b.ts']).toMatch(/const object or a union/)
    expect(problems[2]?.message).toContain('foo bar')
    expect(hints['e.ts']).toContain("extension: './f.ts'")
    expect(hints['f.ts']).toBe('Install it: npm install left-pad-nope')
    expect(hints['g.ts']).toBe('It is a type: write import type { Nothing }, because Node removes types.')
    expect(hints['h.ts']).toContain("'bad_key_'")
    expect(problems[3]?.message).toBe('importing assets/d.ts failed: no database')
  })

  test('because modules import each other is explained with the way round', async () => {
    const problems = await problemsOf({
      'a.ts':
        "import { asset } from 'servo-flow'\nimport { b } from './b.ts'\nexport const a = asset('a', { deps: [b], run: () => 1 })\n",
      'b.ts':
        "import { asset } from 'servo-flow'\nimport { a } from './a.ts'\nexport const b = asset('b', { deps: [a], run: () => 1 })\n",
    })
    expect(problems).toMatchObject([
      {
        code: 'import_cycle',
        message: expect.stringContaining('assets/b.ts → assets/a.ts → assets/b.ts'),
        file: 'assets/b.ts',
        line: 3,
      },
    ])
    expect(problems[0]?.hint).toContain("deps: ['its/key']")
  })
})

describe('definitions that do not fit together', () => {
  test('two assets of one key are named with both places', async () => {
    expect(await problemsOf({ 'a.ts': one('mart/x'), 'b.ts': `\n${one('mart/x', 'two')}` })).toMatchObject([
      {
        code: 'duplicate_key',
        message: 'duplicate asset mart/x: assets/a.ts:2 and assets/b.ts:3',
        file: 'assets/b.ts',
        line: 3,
      },
    ])
  })

  test('a dependency that nobody exports is named, with what may have been meant', async () => {
    const problems = await problemsOf({
      'a.ts': one('raw/orders'),
      'b.ts': one('b', 'b', "deps: ['raw/ordres', 'orders', 'something/else'],"),
      'c.ts': `import { asset, schedule } from 'servo-flow'
const hidden = asset('hidden', { run: () => 1 })
export const c = asset('c', { inputs: { hidden }, run: () => 1 })
export const nightly = schedule('nightly', { cron: '0 5 * * *', select: ['raw/orderz'] })\n`,
    })
    expect(problems.map(({ code, message, hint }) => [code, message.split(',')[0], hint])).toEqual([
      ['missing_dependency', 'b depends on the unknown asset raw/ordres', 'Did you mean raw/orders?'],
      ['missing_dependency', 'b depends on the unknown asset orders', 'Did you mean raw/orders?'],
      [
        'missing_dependency',
        'b depends on the unknown asset something/else',
        'Correct the key, or export something/else from a module in dirs of servo.config.ts.',
      ],
      [
        'missing_dependency',
        'c depends on the unknown asset hidden',
        'Correct the key, or export hidden from a module in dirs of servo.config.ts.',
      ],
      ['missing_dependency', 'schedule nightly selects the unknown asset raw/orderz', 'Did you mean raw/orders?'],
    ])
  })

  test('a circle of keys is shown all the way round', async () => {
    const problems = await problemsOf({
      'a.ts': one('a', 'a', "deps: ['b'],"),
      'b.ts': one('b', 'b', "deps: ['c'],"),
      'c.ts': one('c', 'c', "deps: ['a'],"),
      'd.ts': one('d', 'd', "deps: ['d'],"),
    })
    expect(problems.map(({ code, message }) => [code, message.split(': ')[1]])).toEqual([
      ['cycle', 'a → b → c → a'],
      ['cycle', 'd → d'],
    ])
  })

  test('a pool that the config does not have is named', async () => {
    expect(await problemsOf({ 'a.ts': one('a', 'a', "pool: 'wherehouse',") })).toMatchObject([
      {
        code: 'unknown_pool',
        message: 'a uses the unknown pool wherehouse',
        file: 'assets/a.ts',
      },
    ])
  })

  test('partitions that cannot belong together are told apart where the asset is declared', async () => {
    const parts = (name: string, partitions: string, rest = '') => one(name, name, `partitions: ${partitions}, ${rest}`)
    const imports = "import { daily, keys, monthly } from 'servo-flow'\n"
    const problems = await problemsOf({
      'days.ts': imports + parts('days', "daily({ start: '2025-01-01' })"),
      'tokyo.ts': imports + parts('tokyo', "monthly({ start: '2025-01', timezone: 'Asia/Tokyo' })", "deps: ['days'],"),
      'regions.ts': imports + parts('regions', "keys(['eu', 'us'])", "deps: ['days'],"),
      'months.ts': imports + parts('months', "monthly({ start: '2025-01' })", "deps: ['days'],"),
    })
    expect(problems.map(({ code, message, file }) => [code, message, file])).toEqual([
      ['mapping_missing', 'regions is partitioned by keys and days by day: say how they map', 'assets/regions.ts'],
      [
        'mapping_missing',
        expect.stringMatching(/^tokyo depends on days: windows in Asia\/Tokyo and in UTC/),
        'assets/tokyo.ts',
      ],
    ])
  })

  test('a project without assets is told how to write one', async () => {
    expect(await problemsOf({ 'a.ts': 'export const x = 1\n' })).toMatchObject([
      { code: 'empty_project', hint: expect.stringContaining("asset('hello'") },
    ])
  })

  test('modules that cannot be loaded do not hide what is wrong with the others, and are not taken for missing', async () => {
    const problems = await problemsOf({
      'a.ts': "throw new Error('x')\n",
      'b.ts': one('b', 'b', "deps: ['a'], pool: 'none',"),
      'c.ts': one('b', 'c'),
    })
    expect(problems.map(({ code }) => code)).toEqual(['load_failed', 'unknown_pool', 'duplicate_key'])
  })
})
