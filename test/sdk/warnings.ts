// What a function in check.warn gets, by the compiler: each line fails the type check when it is something else.
import { asset, check, command, type DataTable, daily, table } from 'servo-flow'
import { z } from 'zod'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const is = <Expected>() => ({
  exactly: <Given>(_: Given, ..._wrong: Same<Given, Expected> extends true ? [] : [Given]) => true,
})

const id = z.object({ id: z.number() })
type Rows = DataTable<{ id: number }>

asset('value', {
  run: () => ({ euros: 3 }),
  checks: {
    big: check.warn(({ euros }) => is<number>().exactly(euros) && euros > 10),
    'in words': check.warn(async (value) => ({ ok: is<{ euros: number }>().exactly(value), message: `${value.euros} euros` })),
    blocks: ({ euros }) => euros > 0,
  },
})
asset('of-a-day', {
  partitions: daily({ start: '2025-01-01' }),
  run: async () => ({ euros: 3 }),
  checks: { big: check.warn(({ euros }) => is<number>().exactly(euros)) },
})
// The compiler looks at a body with parameters too late: the function may take anything, or say what it takes.
asset('with-parameters', {
  run: ({ attempt }) => ({ euros: attempt }),
  checks: {
    big: check.warn(({ euros }) => euros > 10),
    typed: check.warn((value: { euros: number }) => value.euros > 10),
  },
})
table('rows', {
  schema: id,
  run: ({ attempt }) => [{ id: attempt }],
  checks: {
    'no negative ids': check.warn(async (rows) => (await rows.sql`select 1 from this where id < ${0}`).length === 0),
    rows: check.warn((rows) => is<Rows>().exactly(rows)),
    'not empty': check.warn(check.rowCount({ min: 1 })),
    'one row per id': check.warn(check.unique('id')),
  },
})
command('rows-of-a-program', {
  run: ['x'],
  output: 'rows.csv',
  schema: id,
  checks: { rows: check.warn((rows) => is<Rows>().exactly(rows)), 'every row has an id': check.warn(check.notNull('id')) },
})
