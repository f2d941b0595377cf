import { expect } from 'vitest'
import { isServoError } from '../../../lib/error.ts'
import type { ListedObject, ListOptions, ObjectStore } from '../../../ports/object-store.ts'

/** Asked for inside each test, because each has a store of its own. */
export type TheStore = () => ObjectStore

export function text(value: string): Uint8Array {
  return new TextEncoder().encode(value)
}

export function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index))
}

/** Compared natively: an `expect` over megabytes would take longer than writing them. */
export function sameBytes(one: Uint8Array | undefined, other: Uint8Array): boolean {
  return one !== undefined && Buffer.compare(one, other) === 0
}

/** Creates an object under each path, holding the path as text, sixteen at a time. */
export async function fill(store: ObjectStore, paths: readonly string[]): Promise<void> {
  const left = [...paths].reverse()
  await Promise.all(
    times(16, async () => {
      for (let path = left.pop(); path !== undefined; path = left.pop()) {
        expect(await store.create(path, text(path)), path).toBe('written')
      }
    }),
  )
}

export async function listAll(store: ObjectStore, prefix: string, options?: ListOptions): Promise<ListedObject[]> {
  const objects: ListedObject[] = []
  for await (const object of store.list(prefix, options)) objects.push(object)
  return objects
}

export async function pathsIn(store: ObjectStore, prefix: string, options?: ListOptions): Promise<string[]> {
  return (await listAll(store, prefix, options)).map((object) => object.path)
}

/** The request is refused as a mistake of the caller, whether the method throws or its promise rejects. */
export async function expectInvalid(request: () => unknown, what: string): Promise<void> {
  const outcome = await (async () => request())().then(
    () => 'accepted',
    (error: unknown) => (isServoError(error, 'invalid') ? 'invalid' : error),
  )
  expect(outcome, what).toBe('invalid')
}
