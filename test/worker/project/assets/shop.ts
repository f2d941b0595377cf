import { asset, command, daily, Fatal, sql, table } from 'servo-flow'
import { z } from 'zod'

export const rates = asset('rates', { run: () => ({ eur: 1, usd: 1.1 }) })

export const orders = table('raw/orders', {
  schema: z.object({
    id: z.int(),
    amount: z.number(),
    placed: z.date(),
    note: z.string().nullable(),
    tags: z.array(z.string()),
  }),
  inputs: { rates },
  run: ({ rates, log }) => {
    log.info('making orders', { rates })
    return [1, 2, 3].map((id) => ({
      id,
      amount: id * rates.usd,
      placed: new Date(Date.UTC(2025, 0, id)),
      note: id === 2 ? null : `order ${id}`,
      tags: ['a', 'ü'].slice(0, id - 1),
    }))
  },
})

export const total = table('mart/total', {
  schema: z.object({ orders: z.int(), amount: z.number(), last: z.date() }),
  inputs: { orders },
  sql: ({ orders }) => sql`select count(*) as orders, sum(amount) as amount, max(placed) as last from ${orders}`,
})

export const columns = asset('columns', {
  inputs: { orders },
  run: async ({ orders }) => Object.keys((await orders.sql`select * from this`)[0] ?? {}),
})

export const greeting = command('greeting', {
  partitions: daily({ start: '2025-01-01' }),
  run: ['sh', '-c', 'echo "hello $0"; echo oops >&2; exit $CODE', ({ key }) => key],
  env: { CODE: '0' },
})

export const failing = command('failing', { run: ['sh', '-c', 'echo bad news >&2; exit 3'] })
export const missing = command('missing', { run: ['no-such-program-at-all'] })

export const stubborn = command('stubborn', {
  run: ['sh', '-c', 'trap "" TERM; sleep 1000 & echo $$ $!; while :; do wait; done'],
})

export const hopeless = asset('hopeless', {
  run: () => {
    throw new Fatal('never')
  },
})
