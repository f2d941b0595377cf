// Values that JSON cannot hold. Each expectation is a mistake: see mistakes.test.ts.
import { asset, io } from 'servo-flow'

// @ts-expect-error a Date in rows
asset('dated', { run: () => ({ rows: [{ at: new Date() }] }) })

// @ts-expect-error a Map
asset('mapped', { run: async () => new Map([['a', 1]]) })

// @ts-expect-error a Set in an object
asset('set', { run: () => ({ seen: new Set<string>() }) })

// @ts-expect-error a big integer
asset('big', { run: () => [1n] })

// @ts-expect-error a member that may be undefined
asset('undefined', { run: (): { total: number | undefined } => ({ total: undefined }) })

class Money {
  readonly cents = 1
  toString(): string {
    return `${this.cents}`
  }
}
// @ts-expect-error an instance of a class
asset('instance', { run: () => ({ price: new Money() }) })

// @ts-expect-error bytes
asset('bytes', { run: () => new Uint8Array(3) })

// @ts-expect-error a function
asset('function', { run: () => () => 1 })

interface Tree {
  name: string
  parent?: string
  children: readonly Tree[]
  size: [number, number] | null
  kind: 'leaf' | 'branch'
}

declare const tree: Tree
declare const anything: unknown
/** These are right. */
export const kept = [
  asset('tree', { run: async (): Promise<Tree> => tree }),
  asset('anything', { run: () => anything }),
  asset('record', { run: (): Record<string, { n: number }[]> => ({}) }),
  asset('nothing', { run: async () => {} }),
  asset('sometimes', { run: () => (Math.random() > 2 ? undefined : { n: 1 }) }),
  asset('by-io', { run: () => new Date(), io: io('date', { write: (at: Date) => at.toISOString(), read: () => new Date() }) }),
]
