import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { orchestration } from '../src/domain/index.ts'
import { systemTables } from '../src/model/system-tables.ts'
import type { Table } from '../src/model/table.ts'
import { controllersOf } from '../src/server/leader/controllers.ts'

const root = path.resolve(import.meta.dirname, '..')

/** Which folders of src/ a folder may import, besides itself. Imports go inward: lib ← model ← domain, engine ← api ← server. */
const inward: Record<string, string[] | 'anything'> = {
  lib: [],
  model: ['lib'],
  // What crosses the border of a process: dispatches, results, projects.
  contract: ['lib'],
  // When an expression ticks, and which windows of time there are: arithmetic without a clock.
  cron: ['lib'],
  partitions: ['lib', 'cron'],
  domain: ['lib', 'model', 'contract', 'cron', 'partitions'],
  ports: ['lib'],
  // Generic over the registry: the engine names no event, so it does not know domain.
  engine: ['lib', 'model', 'ports', 'parquet'],
  // How a lease is held, challenged and lost: the algorithm that every adapter of the lease shares.
  lease: ['lib', 'ports'],
  // What the engine and the workers share of reading and writing Parquet, and all they know of the inside of its libraries.
  parquet: ['lib'],
  adapters: ['lib', 'ports', 'lease'],
  // What authors of assets write with; runs in their processes, so it knows nothing of the orchestrator.
  sdk: ['lib', 'contract', 'partitions', 'cron'],
  worker: ['lib', 'ports', 'contract', 'sdk', 'parquet'],
  api: ['lib', 'model', 'contract', 'partitions', 'domain', 'ports', 'engine'],
  client: ['lib', 'api'],
  server: ['lib', 'model', 'contract', 'partitions', 'domain', 'ports', 'engine', 'adapters', 'sdk', 'worker', 'api', 'client'],
  cli: 'anything',
  testing: 'anything',
  'index.ts': 'anything',
  // What tests of assets import.
  'test.ts': ['sdk'],
}

/** The packages that the pure part may import; everything else is IO, or may become it. */
const purePackages = ['zod']

const isTest = (file: string) => file.endsWith('.test.ts')

const generated = new Set(['node_modules', '.git', '.tools', '.servo', 'dist', 'coverage'])

/** Paths relative to the root, with forward slashes. */
function filesUnder(folder: string): string[] {
  const absolute = path.join(root, folder)
  if (!fs.existsSync(absolute)) return []
  return fs.readdirSync(absolute, { withFileTypes: true }).flatMap((entry) => {
    const file = path.posix.join(folder, entry.name)
    // In a worktree of Git, .git is a file.
    if (generated.has(entry.name)) return []
    if (entry.isDirectory()) return filesUnder(file)
    return entry.isFile() ? [file] : []
  })
}

const read = (file: string) => fs.readFileSync(path.join(root, file), 'utf8')

interface Import {
  file: string
  specifier: string
  /** The imported file as a path from the root; undefined for a package. */
  target: string | undefined
}

const importForms = [
  /^import\s+(type\s+)?[\w\s{},*$]+?\s+from\s*['"]([^'"]+)['"]/gm,
  /^export\s+(type\s+)?(?:\*(?:\s+as\s+\w+)?|\{[^}]*\})\s*from\s*['"]([^'"]+)['"]/gm,
  /^import\s*()['"]([^'"]+)['"]/gm,
  /\bimport\(\s*()['"]([^'"]+)['"]/g,
]

function importsOf(file: string): Import[] {
  const source = read(file)
  return importForms.flatMap((form) =>
    [...source.matchAll(form)].map(([, , specifier = '']) => ({
      file,
      specifier,
      target: specifier.startsWith('.') ? path.posix.join(path.posix.dirname(file), specifier) : undefined,
    })),
  )
}

const sources = filesUnder('src').filter((file) => file.endsWith('.ts'))
const tests = [...sources, ...filesUnder('test')].filter(isTest)
const imports = sources.flatMap(importsOf)
const productImports = imports.filter(({ file }) => !isTest(file))

const layerOf = (file: string) => file.split('/')[1] ?? ''
const adapterOf = (file: string) => file.split('/')[2] ?? ''

/** Why this import goes the wrong way, and what to do; undefined when it goes inward. */
function wrongWay({ file, specifier, target }: Import): string | undefined {
  const from = layerOf(file)
  const allowed = inward[from]
  if (!allowed) return `${file}: src/${from} has no place yet. Say in test/tidy.test.ts what it may import.`
  const pure = ['domain', 'model', 'cron', 'partitions'].includes(from)
  if (!target) {
    return !pure || purePackages.includes(specifier)
      ? undefined
      : `${file} imports ${specifier}. ${from}/ is arithmetic: take what you need as an argument, or put the pure part into lib/.`
  }
  if (!target.startsWith('src/')) return `${file} imports ${target}. Source does not import from outside src/; move it in.`
  if (isTest(target)) return `${file} imports the test ${target}. Move what they share into src/testing/.`
  if (allowed === 'anything') return undefined
  const to = layerOf(target)
  if (from === 'adapters' && to === 'adapters' && adapterOf(file) !== adapterOf(target)) {
    return `${file} imports ${target}. Adapters do not know each other: what both need belongs into lib/ or the port.`
  }
  if (to === from || allowed.includes(to)) return undefined
  const hint = allowed.length > 0 ? `${from}/ may import ${allowed.join(', ')}` : `${from}/ imports nothing of Servo`
  return `${file} imports ${target}. Imports go inward: ${hint}. Take it as an argument, or move it inward.`
}

/** The room of a file: a second-level folder. A file beside the rooms of its layer has none. */
const roomOf = (file: string) => (file.split('/').length > 3 ? file.split('/')[2] : undefined)

/**
 * The parts of a layer import each other in one direction only, so that one can be read before the other. A part is a room, or a
 * file beside the rooms. The domain has an order of files only: a folder there is a noun, and the events of one noun change rows of
 * others.
 */
const partOf = (file: string) => (layerOf(file) === 'domain' ? file : (roomOf(file) ?? file))

/** A product of partition sets is made of other kinds of sets, and is one itself: src/partitions is read as a whole. */
const isOneKnot = new Set(['partitions'])

/** For each part of a layer the parts that it imports, each with an import that does so. */
function importsBetweenParts(layer: string): Map<string, Map<string, string>> {
  const between = new Map<string, Map<string, string>>()
  for (const { file, target = '' } of productImports) {
    const [from, to] = [partOf(file), partOf(target)]
    if (layerOf(file) !== layer || layerOf(target) !== layer || from === to) continue
    between.set(from, (between.get(from) ?? new Map()).set(to, `${file} imports ${target}`))
  }
  return between
}

/** The groups of parts of a layer in which each reaches each other one by imports, with the imports within the group. */
function cyclesIn(layer: string): { name: string; within: string[] }[] {
  const between = importsBetweenParts(layer)
  const reachedFrom = (part: string, seen = new Set<string>()): Set<string> => {
    for (const next of between.get(part)?.keys() ?? []) if (!seen.has(next)) reachedFrom(next, seen.add(next))
    return seen
  }
  return [...between.keys()].flatMap((part) => {
    const group = [...reachedFrom(part)].filter((other) => reachedFrom(other).has(part)).sort()
    // Each group is found from each of its parts, and told once.
    if (group[0] !== part) return []
    const within = group.flatMap((from) => group.flatMap((to) => between.get(from)?.get(to) ?? []))
    return [{ name: `src/${layer}: ${group.join(', ')}`, within }]
  })
}

const violations = <T>(items: T[], rule: (item: T) => string | false | undefined) => items.map(rule).filter(Boolean)

/** How much there may be. These numbers only get smaller. */
const limits = {
  sourceLines: 350,
  testLines: 440,
  filesSideBySide: 25,
  namesExportedTwice: 0,
  casts: 80,
  untypedRowAccesses: 0,
}

const products = sources.filter((file) => !isTest(file))
const registered: readonly Table[] = [...orchestration.tables, ...systemTables]

/** The source without comments and import statements, in which words may look like code. */
function codeOf(file: string): string {
  return read(file)
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/(^|\s)\/\/[^\n]*/g, '')
    .replace(/^(?:import|export)\s+(?:type\s+)?[\w\s{},*$]+?\s+from\s*['"][^'"]+['"]/gm, '')
}

/** Names that a file declares and exports. Overloads, and a type beside a value of its name, are one. */
function exportedBy(file: string): Set<string> {
  const form =
    /^export\s+(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?(?:function\*?|const|let|class|interface|type|enum)\s+(\w+)/gm
  return new Set([...read(file).matchAll(form)].map(([, name = '']) => name))
}

/** Type assertions: `x as T`, but not `as const`. */
function castsIn(file: string): number {
  // Text may hold the word too.
  const code = codeOf(file)
    .replace(/'(?:[^'\\\n]|\\.)*'/g, (text) => text.replace(/\bas\b/g, ''))
    .replace(/`[^`$]*`/g, '``')
  return code.match(/[\w)\]}!'`] as (?!const\b)[\w({['"]/g)?.length ?? 0
}

describe('the shape of src/', () => {
  test('imports go inward', () => {
    expect(violations(productImports, wrongWay)).toEqual([])
  })

  test('rooms, and files beside them, do not import each other in a circle', () => {
    const cycles = Object.keys(inward)
      .filter((layer) => !isOneKnot.has(layer))
      .flatMap(cyclesIn)
    const rule = ({ name, within }: (typeof cycles)[number]) =>
      [`${name} import each other. Move what both need into the inner one.`, ...within].join('\n  ')
    expect(violations(cycles, rule)).toEqual([])
  })

  test('a room of the engine imports only rooms above it in ARCHITECTURE.md', () => {
    const rooms = [...read('ARCHITECTURE.md').matchAll(/^\| `src\/engine\/(\w+)` \|/gm)].map(([, room]) => room)
    const rule = ({ file, target = '' }: Import) => {
      const [from, to] = [roomOf(file), roomOf(target)]
      if (layerOf(file) !== 'engine' || layerOf(target) !== 'engine' || from === undefined || to === undefined) return undefined
      return (
        rooms.indexOf(to) > rooms.indexOf(from) && `${file} imports ${target}: move ${to} above ${from}, or the import inward.`
      )
    }
    expect(violations(productImports, rule)).toEqual([])
    const there = new Set(products.filter((file) => layerOf(file) === 'engine').flatMap((file) => roomOf(file) ?? []))
    const unlisted = [...there].filter((room) => !rooms.includes(room))
    expect(unlisted, 'Say in ARCHITECTURE.md what these rooms of src/engine are.').toEqual([])
  })

  test('ARCHITECTURE.md says of every folder what it may import', () => {
    const rows = [...read('ARCHITECTURE.md').matchAll(/^\| `src\/(\w+)` \|[^|]*\| (.+) \|$/gm)]
    const told = Object.fromEntries(rows.map(([, folder = '', may = '']) => [folder, may]))
    const folders = Object.entries(inward).filter(([name]) => !name.endsWith('.ts'))
    const expected = folders.map(([folder, may]) => [
      folder,
      may === 'anything' ? expect.stringMatching(/^anything/) : may.join(', ') || 'nothing',
    ])
    expect(told).toEqual(Object.fromEntries(expected))
  })

  test('ARCHITECTURE.md lists the controllers in the order in which the loop asks them', () => {
    const [, table = ''] = /^\| controller \| decides \|\n\|[-|]+\n((?:\|.*\n)+)/m.exec(read('ARCHITECTURE.md')) ?? []
    const listed = [...table.matchAll(/^\| ([^|]+) \|/gm)].flatMap(([, names = '']) => names.split(', '))
    const none = () => 0
    const controllers = controllersOf({
      instance: 'tidy',
      limits: () => ({ local: 0, ahead: 0, queues: {} }),
      cancelGraceMs: none,
      stuckDispatchMs: none,
      lastSign: none,
      carries: () => true,
      alerts: () => [],
      automation: { requestRun: () => assert.fail('a controller that is not asked decides nothing'), mayDecide: () => false },
      backfills: { requestRun: () => assert.fail('a controller that is not asked decides nothing') },
    })
    expect(listed).toEqual(controllers.map(({ name }) => name))
  })

  test('a relative import names the file as it is, with its extension', () => {
    const rule = ({ file, specifier, target }: Import) =>
      target && !/\.(ts|json)$/.test(specifier) && `${file} imports '${specifier}': write the real file name, ending in .ts.`
    expect(violations(imports, rule)).toEqual([])
  })

  test('no file is longer than it may be', () => {
    const rule = (file: string) => {
      const lines = read(file).trimEnd().split('\n').length
      const most = isTest(file) ? limits.testLines : limits.sourceLines
      return lines > most && `${file} has ${lines} lines, of ${most}: which two things are in there?`
    }
    expect(violations([...sources, ...tests], rule)).toEqual([])
  })

  test('no folder has more files side by side than fit on a screen', () => {
    const counts = new Map<string, number>()
    for (const file of [...sources, ...filesUnder('test')]) {
      const folder = path.posix.dirname(file)
      counts.set(folder, (counts.get(folder) ?? 0) + 1)
    }
    const rule = ([folder, count]: [string, number]) =>
      count > limits.filesSideBySide && `${folder} has ${count} files side by side: which rooms are in there?`
    expect(violations([...counts], rule)).toEqual([])
  })

  test('an exported name means one thing', () => {
    const files = new Map<string, string[]>()
    for (const file of products) {
      for (const name of exportedBy(file)) files.set(name, [...(files.get(name) ?? []), file])
    }
    const twice = [...files].filter(([, where]) => where.length > 1).map(([name, where]) => `${name}: ${where.join(', ')}`)
    const how = 'Rename one of them, or keep one and import it. See `limits.namesExportedTwice`.'
    expect(twice.length, [how, ...twice].join('\n')).toBeLessThanOrEqual(limits.namesExportedTwice)
  })

  test('types are given, not asserted', () => {
    const found = products.map((file) => [file, castsIn(file)] as const).filter(([, count]) => count > 0)
    const sum = found.reduce((total, [, count]) => total + count, 0)
    const most = found.sort(([, one], [, other]) => other - one).map(([file, count]) => `${count} ${file}`)
    const how = 'Type the source of the value, or parse it. Type assertions by file:'
    expect(sum, [how, ...most].join('\n')).toBeLessThanOrEqual(limits.casts)
  })

  test('columns of a row are read as typed properties', () => {
    const columns = new Set(registered.flatMap((table) => Object.keys(table.columns)))
    // The engine and the model are generic over tables: there a column is a value. `Type['column']` is a type, headers are a map.
    const named = products.filter((file) => ['domain', 'api', 'client', 'cli', 'server'].includes(layerOf(file)))
    const found = named.flatMap((file) =>
      [...codeOf(file).matchAll(/\b(?![A-Z]|headers\b)\w+\)*(?:\?\.)?\[['"]([a-z_]+)['"]\]/g)]
        .filter(([, column = '']) => columns.has(column))
        .map(([access]) => `${file}: ${access}`),
    )
    const how = 'Give the row the type of its table (RowOf), and write row.column.'
    expect(found.length, [how, ...found].join('\n')).toBeLessThanOrEqual(limits.untypedRowAccesses)
  })

  test('every module has a name of its own', () => {
    const nameless = /(?:^|[-./])(utils?|common|shared|helpers?|manager|services?|types|misc)(?=[-./]|$)/
    const rule = (file: string) => {
      const word = nameless.exec(file.slice('src/'.length))?.[1]
      return word && `${file}: "${word}" says nothing about what is in there. Name it as you would say it to a colleague.`
    }
    expect(violations(sources, rule)).toEqual([])
  })
})

/** What a component is given when it is made, so that a test, another machine or another store can give it something else. */
const given: Record<string, RegExp> = {
  'a folder as the store': /(?<!function )\bfsStore\(/,
  'a constant scope': /\blocalScope\b/,
  'the clock on the wall': /\bsystemClock\b|\bDate\.now\b/,
  'a thread of the whole process': /^(?:export )?const \w+ = (?:new Worker|\w+Thread)\(/m,
}

/** The adapter of the clock, and where the components of a process are put together; tests choose what they like. */
const mayChoose = (file: string) =>
  file.startsWith('src/testing/') ||
  ['src/adapters/system/clock.ts', 'src/server/components.ts', 'src/server/machine/worker-process.ts'].includes(file)

/** Those who choose for themselves all the same. This list only gets shorter. */
const choosers: Record<string, string[]> = {
  // A lease is a folder of objects too.
  'src/adapters/fs/lease.ts': ['a folder as the store'],
}

describe('components', () => {
  test('are given their store, scope, clock and threads; who chooses for themselves is known', () => {
    const found = sources
      .filter((file) => !isTest(file) && !mayChoose(file))
      .map((file) => [file, Object.keys(given).filter((what) => given[what]?.test(read(file)))] as const)
      .filter(([, chosen]) => chosen.length > 0)
    expect(Object.fromEntries(found), 'Take it as an argument. What src/server/components.ts makes is handed down.').toEqual(
      choosers,
    )
  })
})

/** Where rules and tests name each other. Conformance suites are tests too. */
const titled = [...tests, ...filesUnder('src/testing/conformance'), ...filesUnder('test')].filter(
  // This file speaks of numbers, which proves nothing.
  (file) => file.endsWith('.ts') && file !== 'test/tidy.test.ts',
)

/** The numbers at the head of titles, such as `[T5][I7] a dispatch that comes too early waits`, with the files that carry them. */
function carriedNumbers(): Map<string, Set<string>> {
  const carried = new Map<string, Set<string>>()
  for (const file of titled) {
    for (const [, head = ''] of read(file).matchAll(/['"`]((?:\[[A-Z][A-Z0-9-]*\d\] ?)+)/g)) {
      for (const [, number = ''] of head.matchAll(/\[([^\]]+)\]/g)) {
        carried.set(number, (carried.get(number) ?? new Set()).add(file))
      }
    }
  }
  return carried
}

describe('the rules of SPEC.md', () => {
  const rules = [...read('SPEC.md').matchAll(/^- \*\*([A-Z]+\d+)\*\*/gm)].map(([, number = '']) => number)
  const carried = carriedNumbers()

  test('have one number each', () => {
    expect(rules.filter((number, i) => rules.indexOf(number) !== i)).toEqual([])
    expect(rules.length).toBeGreaterThan(100)
  })

  test('are each carried by the title of a test', () => {
    const left = rules.filter((number) => !carried.has(number))
    expect(left, 'Write a test that fails when the rule is broken, and begin its title with the number.').toEqual([])
  })

  test('are the only numbers that titles carry', () => {
    const unknown = [...carried].filter(([number]) => !rules.includes(number)).map(([number, files]) => [number, [...files]])
    expect(unknown, 'Write the rule into SPEC.md, or take the number of the rule that the test proves.').toEqual([])
  })
})

describe('what is in the repository', () => {
  test('no test is left out', () => {
    const left = /\.(?:only|skip|todo)\s*[(.`]/
    const rule = (file: string) => {
      const found = left.exec(read(file))?.[0]
      return found && `${file} has "${found}": finish the test or delete it.`
    }
    expect(violations(tests, rule)).toEqual([])
  })

  test('no file names a path of the machine it was written on', () => {
    const home = new RegExp(`(?<![\\w.})-])${['', 'work', ''].join('/')}`)
    const rule = (file: string) => {
      const text = read(file)
      // A zero byte means a binary file, such as golden Parquet.
      if (text.includes('\0')) return undefined
      const line = text.split('\n').findIndex((it) => home.test(it)) + 1
      return line > 0 && `${file}:${line} names a folder of one developer's machine: make it relative to the repository.`
    }
    expect(violations(filesUnder('.'), rule)).toEqual([])
  })

  test('every path that a page names is there', () => {
    const pages = [...fs.readdirSync(root), ...filesUnder('docs')].filter(
      (file) => file.endsWith('.md') && file !== 'CHANGELOG.md',
    )
    const rule = (page: string) => {
      const named = [...read(page).matchAll(/`((?:src|test|docs|bench|scripts|examples)\/[\w./-]*[\w-])\/?`/g)]
      const gone = named.map(([, file = '']) => file).filter((file) => !fs.existsSync(path.join(root, file)))
      return gone.length > 0 && `${page} names ${gone.join(', ')}: say where that is now.`
    }
    expect(violations(pages, rule)).toEqual([])
  })

  test('the lock file names no registry', () => {
    const hosts = read('package-lock.json').match(/"resolved": .*/g) ?? []
    expect(hosts, 'Run `npm install` again: .npmrc asks npm to leave these out.').toEqual([])
  })
})
