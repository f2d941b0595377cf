import { expect, test } from 'vitest'
import { explainQueryError } from './duckdb-query.ts'

test('a query that reads a file is told that it may read only its inputs, and what to do instead', () => {
  const refused = new Error(
    'Permission Error: Cannot access file "here.csv" - file system operations are disabled by configuration',
  )
  expect(explainQueryError(refused, ['orders'])).toMatchObject({
    code: 'bad_query',
    message: expect.stringMatching(/^a query can read only its inputs: Permission Error/),
    hint: expect.stringContaining('Read the file in `run`'),
  })
  expect(explainQueryError(new Error('Binder Error: no such column'), ['orders'])).toMatchObject({
    hint: 'Change the query. It can name orders.',
  })
})
