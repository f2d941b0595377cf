import { expect, test } from 'vitest'
import { z } from 'zod'
import { previous } from '../partitions/mapped.ts'
import { daily, keys, multi } from '../partitions/partitions.ts'
import { ranges } from '../partitions/ranges.ts'
import { asset, command } from './asset.ts'

const schema = z.object({ id: z.string() })
const day = daily({ start: '2025-01-01' })
const plain = asset('plain', { run: () => 1 })
/** As written by someone without a compiler. */
type Loose = (...args: unknown[]) => unknown
const loose = (fn: unknown): Loose => fn as Loose

const cases: [string, () => unknown, RegExp, RegExp][] = [
  [
    'an output in a folder',
    () => command('a', { run: ['x'], output: '../rows.csv', schema }),
    /output of a is "..\/rows.csv"/,
    /without a folder/,
  ],
  [
    'an output that cannot be read',
    () => loose(command)('a', { run: ['x'], output: 'rows.xlsx', schema }),
    /"rows.xlsx"/,
    /\.parquet, \.csv or \.ndjson/,
  ],
  ['rows without a schema', () => loose(command)('a', { run: ['x'], output: 'rows.csv' }), /has no schema/, /z\.object/],
  ['a schema without rows', () => loose(command)('a', { run: ['x'], schema }), /no output/, /output: 'rows.csv'/],
  ['checks of no rows', () => loose(command)('a', { run: ['x'], checks: { c: () => 1 } }), /has checks/, /Pipes/],
  [
    'a past that is not kept',
    () => command('a', { run: ['x'], partitions: day, inputs: { before: previous() } }),
    /its own past/,
    /output and schema/,
  ],
  [
    'inputs of one variable',
    () => command('a', { run: ['x'], inputs: { rawOrders: plain, raw_orders: plain } }),
    /both be SERVO_INPUT_RAW_ORDERS/,
    /Rename/,
  ],
  [
    'dimensions of one variable',
    () => command('a', { run: ['x'], partitions: multi({ 'a-b': keys(['1']), a_b: keys(['2']) }) }),
    /both be SERVO_PARTITION_A_B/,
    /Rename/,
  ],
  [
    'an input that is no variable',
    () => command('a', { run: ['x'], inputs: { é: plain } }),
    /an input called "é"/,
    /letters, digits/,
  ],
  [
    'a variable that is taken',
    () => command('a', { run: ['x'], env: { SERVO_PARTITION: 'x' } }),
    /SERVO_PARTITION, which Servo sets/,
    /another name/,
  ],
  [
    'rows of ranges',
    () => command('a', { run: ['x'], partitions: ranges(day), output: 'rows.csv', schema }),
    /command a uses ranges\(\)/,
    /without `output`/,
  ],
]

test.each(cases)('a command with %s is refused with what to write instead', (_, write, message, hint) => {
  expect(write).toThrow(
    expect.objectContaining({ kind: 'invalid', message: expect.stringMatching(message), hint: expect.stringMatching(hint) }),
  )
})
