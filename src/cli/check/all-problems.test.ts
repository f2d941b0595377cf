import { expect, test } from 'vitest'
import { allProblems } from './all-problems.ts'

const types = [
  { code: 'type_error', file: 'b.ts', line: 12, message: 'not a number (TS2322)' },
  { code: 'type_error', file: 'b.ts', line: 2, message: 'imports cannot be written in a CommonJS file (TS1295)' },
  { code: 'type_error', file: 'a.ts', line: 3, message: "a top-level 'export' cannot be used (TS1287)" },
]
const lines = (problems: ReturnType<typeof allProblems>) => problems.map(({ file, line }) => `${file}:${line}`)

test('problems are listed by place', () => {
  const graph = { code: 'unknown_asset', file: 'b.ts', line: 4, message: 'no such asset' }
  expect(lines(allProblems(types, [graph]))).toEqual(['a.ts:3', 'b.ts:2', 'b.ts:4', 'b.ts:12'])
})

test('that files are no modules comes first, without what the compiler says of each import and export', () => {
  const script = {
    code: 'not_a_module',
    file: 'servo.config.ts',
    line: 1,
    message: 'Cannot use import statement outside a module',
  }
  expect(lines(allProblems(types, [script]))).toEqual(['servo.config.ts:1', 'b.ts:12'])
})
