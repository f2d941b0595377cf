import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { notSettings, variables, variablesInSource } from '../../scripts/reference/config.ts'
import { errorGroups } from '../../scripts/reference/error-codes.ts'
import { codesInSource, sources } from '../../scripts/reference/errors.ts'
import { referencePages } from '../../scripts/reference.ts'

const folder = path.resolve(import.meta.dirname, '../../docs/reference')

if (process.env['UPDATE_GOLDEN']) {
  for (const [name, text] of Object.entries(referencePages())) fs.writeFileSync(path.join(folder, name), text)
}

test.each(Object.entries(referencePages()))('docs/reference/%s says what the definitions say', (name, text) => {
  expect(fs.readFileSync(path.join(folder, name), 'utf8'), 'Run `npm run reference`.').toBe(text)
})

test('docs/reference/errors.md has every code of the source once, and no other', () => {
  const documented = errorGroups.flatMap(({ codes }) => Object.keys(codes))
  expect(documented.filter((code, at) => documented.indexOf(code) !== at)).toEqual([])
  const missing = [...codesInSource().keys()].filter((code) => !documented.includes(code))
  expect(missing, 'Say in one sentence what each means, in scripts/reference/error-codes.ts.').toEqual([])
  const text = sources().join('\n')
  const gone = documented.filter((code) => !text.includes(`'${code}'`))
  expect(gone, 'Nothing in src/ makes these any more: remove them.').toEqual([])
})

test('docs/reference/config.md has every variable that Servo reads', () => {
  const known = [...Object.keys(variables), ...notSettings]
  const read = [...variablesInSource()]
  const missing = read.filter((name) => !known.includes(name))
  expect(missing, 'Add each to variables or, if Servo sets it, to notSettings in scripts/reference/config.ts.').toEqual([])
  expect(Object.keys(variables).filter((name) => !read.includes(name))).toEqual([])
})

test('the figures of README.md are those of the benchmarks', () => {
  const root = path.resolve(import.meta.dirname, '../..')
  const text = fs.readFileSync(path.join(root, 'README.md'), 'utf8')
  const rows = [...text.matchAll(/^\| (.*) \| `(bench\/results\/[\w-]+\.json)` \|$/gm)]
  expect(rows.length).toBeGreaterThan(5)
  const wrong = rows.flatMap(([row, cells = '', file = '']) => {
    const [, ...said] = cells.split(' | ')
    const { tables } = JSON.parse(fs.readFileSync(path.join(root, file), 'utf8'))
    const measured: string[] = tables.flatMap((each: { rows: string[][] }) => each.rows.flat())
    const figures = said.join(' ').match(/\d[\d,.]*\d(?: (?:ms|s|%))?/g) ?? []
    return figures.length > 0 && figures.every((figure) => measured.includes(figure)) ? [] : [row]
  })
  expect(wrong).toEqual([])
})
