import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { check, table } from 'servo-flow'
import { Order, Product } from './vocabulary.ts'

const file = (name: string): URL => new URL(`../data/${name}`, import.meta.url)

async function* csv(name: string): AsyncGenerator<Record<string, string>> {
  let columns: string[] | undefined
  for await (const line of createInterface({ input: createReadStream(file(name)) })) {
    const cells = line.split(',')
    if (columns === undefined) columns = cells
    else yield Object.fromEntries(columns.map((column, i) => [column, cells[i] ?? '']))
  }
}

/** Orders as the shop exports them. */
export const orders = table('raw/orders', {
  description: 'Orders as the shop exports them.',
  group: 'raw',
  owners: ['team:shop'],
  schema: Order,
  retry: 3,
  checks: { 'one row per order': check.unique('id'), 'not empty': check.rowCount({ min: 1 }) },
  async *run({ log }) {
    let count = 0
    for await (const { id, customer, region, product, quantity, ordered_at } of csv('orders.csv')) {
      count += 1
      yield Order.parse({ id, customer, region, product, quantity: Number(quantity), ordered_at: new Date(ordered_at ?? '') })
    }
    log.info(`${count} orders read`)
  },
})

/** What is on sale. */
export const products = table('raw/products', {
  description: 'What is on sale.',
  group: 'raw',
  schema: Product,
  async *run() {
    for await (const { product, price, category } of csv('products.csv')) {
      yield Product.parse({ product, price: Number(price), category })
    }
  },
})
