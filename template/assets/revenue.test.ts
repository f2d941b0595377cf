import assert from 'node:assert/strict'
import { test } from 'node:test'
import { materialize } from 'servo-flow/test'
import { orders } from './orders.ts'
import { revenue } from './revenue.ts'

test('revenue is in euros, one row per region', async () => {
  const { value } = await materialize(revenue, {
    partition: '2025-01-01',
    inputs: {
      orders: [
        { id: '1', region: 'uk', amount: 10 },
        { id: '2', region: 'uk', amount: 30 },
        { id: '3', region: 'eu', amount: 5 },
      ],
      regions: [
        { region: 'eu', currency: 'EUR', euros: 1 },
        { region: 'uk', currency: 'GBP', euros: 2 },
      ],
    },
  })
  assert.deepEqual(await value.rows(), [
    { region: 'eu', orders: 1, revenue: 5 },
    { region: 'uk', orders: 2, revenue: 80 },
  ])
})

test('the checks of orders pass', async () => {
  const { ok, checks } = await materialize(orders, { partition: '2025-01-01' })
  assert.equal(ok, true)
  assert.equal(checks['one row per order']?.ok, true)
})
