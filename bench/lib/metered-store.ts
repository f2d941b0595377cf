import type { ListedObject, ListOptions, ObjectStore } from '../../src/ports/object-store.ts'

export interface Written {
  readonly path: string
  readonly bytes: number
}

/** What was asked of a store since the last `take`. */
export interface Usage {
  readonly requests: number
  /** Times that somebody had to wait before asking on: requests that go out together count once. */
  readonly rounds: number
  readonly bytesRead: number
  readonly bytesWritten: number
  /** Objects created or replaced. */
  readonly written: readonly Written[]
  /** Objects read, whole or in part. */
  readonly read: readonly Written[]
}

export interface MeteredStore extends ObjectStore {
  take(): Usage
}

/** A store that tells what each piece of work cost it. */
export function meteredStore(inner: ObjectStore): MeteredStore {
  let requests = 0
  let rounds = 0
  let inFlight = 0
  let written: Written[] = []
  let read: Written[] = []

  async function asking<T>(work: () => Promise<T>): Promise<T> {
    requests += 1
    if (inFlight === 0) rounds += 1
    inFlight += 1
    try {
      return await work()
    } finally {
      inFlight -= 1
    }
  }

  async function reading(path: string, work: () => Promise<Uint8Array | undefined>): Promise<Uint8Array | undefined> {
    const bytes = await asking(work)
    read.push({ path, bytes: bytes?.length ?? 0 })
    return bytes
  }

  async function* listing(prefix: string, options: ListOptions | undefined): AsyncGenerator<ListedObject> {
    const objects = inner.list(prefix, options)[Symbol.asyncIterator]()
    try {
      // One request for the first page; on a folder there is only one.
      for (let next = await asking(() => objects.next()); !next.done; next = await objects.next()) yield next.value
    } finally {
      await objects.return?.()
    }
  }

  async function* folders(prefix: string): AsyncGenerator<string> {
    yield* await asking(() => Array.fromAsync(inner.folders(prefix)))
  }

  const total = (objects: readonly Written[]): number => objects.reduce((bytes, object) => bytes + object.bytes, 0)

  return {
    take() {
      const usage = { requests, rounds, bytesRead: total(read), bytesWritten: total(written), written, read }
      requests = 0
      rounds = 0
      written = []
      read = []
      return usage
    },
    create(path, bytes) {
      written.push({ path, bytes: bytes.length })
      return asking(() => inner.create(path, bytes))
    },
    put(path, bytes) {
      written.push({ path, bytes: bytes.length })
      return asking(() => inner.put(path, bytes))
    },
    get: (path) => reading(path, () => inner.get(path)),
    getRange: (path, start, length) => reading(path, () => inner.getRange(path, start, length)),
    size: (path) => asking(() => inner.size(path)),
    delete: (path) => asking(() => inner.delete(path)),
    list: listing,
    folders,
  }
}

/** What kind of file a path names, for telling which of them grow. */
export function layerOf(path: string): string {
  const [, table, layer, file] = /\/state\/orchestration\/(\w+)\/(?:(\w+)\/)?(?:[\d-]+\/)?([^/]+)$/.exec(path) ?? []
  if (table === undefined) return path.includes('/manifests/') ? 'manifest' : 'other'
  if (layer === undefined) return table.startsWith('_') ? 'order, pages' : 'other'
  if (layer === 'removed') return 'l0'
  return layer === 'runs' ? `runs, level ${/-(\d+)\.parquet$/.exec(file ?? '')?.[1]}` : layer
}
