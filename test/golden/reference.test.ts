import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { referencePages } from '../../scripts/reference.ts'

const folder = path.resolve(import.meta.dirname, '../../docs/reference')

if (process.env['UPDATE_GOLDEN']) {
  for (const [name, text] of Object.entries(referencePages())) fs.writeFileSync(path.join(folder, name), text)
}

test.each(Object.entries(referencePages()))('docs/reference/%s says what the definitions say', (name, text) => {
  expect(fs.readFileSync(path.join(folder, name), 'utf8'), 'Run `UPDATE_GOLDEN=1 npm test -- test/golden`.').toBe(text)
})
