import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'

const root = path.resolve(import.meta.dirname, '..')

/** Imports of values that run when a module is loaded; what `await import(…)` names is loaded later, or never. */
const IMPORTED = /^(?:import|export)\s+(?!type\b)(?:[\w\s{},*$]+?\s+from\s*)?['"]([^'"]+)['"]/gm

/** Files of src/ and packages that are loaded before the first line of these modules runs. */
function loadedWith(...entries: string[]): Set<string> {
  const loaded = new Set(entries)
  // Iterating a set also visits what is added on the way.
  for (const file of loaded) {
    if (!file.startsWith('src/')) continue
    for (const [, name = ''] of fs.readFileSync(path.join(root, file), 'utf8').matchAll(IMPORTED))
      loaded.add(name.startsWith('.') ? path.posix.join(path.posix.dirname(file), name) : name)
  }
  return loaded
}

const HOW =
  'Loading takes longer than the rest of the command. Import types only, or import it where it is needed: await import(…).'
const isDefinition = (name: string): boolean => /\.(?:table|event|controller)\.ts$/.test(name)
const isPackage = (name: string): boolean => !name.startsWith('src/') && !name.startsWith('node:')

test('a command that asks the server about runs, assets, partitions, schedules or sensors loads neither schemas nor tables nor Parquet', () => {
  const commands = [
    'run',
    'runs',
    'assets',
    'show',
    'partition-status',
    'partition-keys',
    'partition-facts',
    'schedules',
    'asked-ticks',
    'ticks',
    'sensors',
    'why',
    'complete',
  ]
  const loaded = loadedWith('src/server/components.ts', ...commands.map((name) => `src/cli/commands/${name}.ts`))
  expect(loaded).toContain('src/client/client.ts')
  expect(
    [...loaded].filter((name) => isDefinition(name) || (isPackage(name) && name !== 'picocolors')),
    HOW,
  ).toEqual([])
  // Node copies the exports of what is imported, and some of these load `fetch`; `process.getBuiltinModule` does not.
  expect(loaded).not.toContain('node:http')
})

test('a server loads what verifies pushes of Google with the first push, and DuckDB with the first query', () => {
  const loaded = loadedWith('src/cli/commands/dev.ts')
  expect(loaded).toContain('src/api/hooks/receive.ts')
  expect(
    [...loaded].filter((name) => ['jose', '@duckdb/node-api'].includes(name)),
    HOW,
  ).toEqual([])
})

test('a worker loads DuckDB and Parquet only when an attempt needs them', () => {
  const loaded = loadedWith('src/server/machine/worker-process.ts')
  expect(loaded).toContain('src/sdk/attempt/execute.ts')
  expect(
    [...loaded].filter((name) => isPackage(name) && name !== 'zod'),
    HOW,
  ).toEqual([])
})
