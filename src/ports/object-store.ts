/**
 * Where everything Servo keeps lives: immutable objects under slash-separated paths, in a folder, a bucket or memory.
 *
 * Expected outcomes are return values; an outage is a thrown error of kind `unavailable`. A thrown `create` or `put`
 * has an unknown outcome: the object may be there. Callers that care try again and compare what is there.
 * A path names an object or leads to others, never both. Bytes handed in stay unchanged until the write resolves.
 * Every adapter passes `testing/conformance/object-store.ts`.
 */
export interface ObjectStore {
  /**
   * Creates an object unless one is there. Atomic between processes, all or nothing, and durable once resolved:
   * of any number of concurrent creators exactly one sees `written`.
   */
  create(path: string, bytes: Uint8Array): Promise<'written' | 'exists'>
  /** Creates or replaces an object; readers see the old bytes or the new ones, never a mix. Durable once resolved. */
  put(path: string, bytes: Uint8Array): Promise<void>
  /** The whole object, or undefined when there is none. */
  get(path: string): Promise<Uint8Array | undefined>
  /** `length` bytes from `start`, fewer at the end of the object; undefined when there is no object. */
  getRange(path: string, start: number, length: number): Promise<Uint8Array | undefined>
  /** Size in bytes, or undefined when there is no object. */
  size(path: string): Promise<number | undefined>
  /**
   * Objects whose path starts with `prefix` (which ends in `/` or is empty), in byte order of their paths, strictly
   * after `after`, a path or prefix, when given. Objects created before the call are listed; later ones may be.
   */
  list(prefix: string, options?: ListOptions): AsyncIterable<ListedObject>
  /**
   * The names directly below `prefix` under which there are objects, without the slash, in byte order of their paths with it.
   * Below a prefix of days this is one cheap request, however many objects the days hold. A folder that has lost its last
   * object may be named too.
   */
  folders(prefix: string): AsyncIterable<string>
  /** Removes an object. Removing what is not there is fine: everything may happen twice. */
  delete(path: string): Promise<void>
}

export interface ListOptions {
  after?: string
}

export interface ListedObject {
  path: string
}
