import type { StoredValue } from '../../contract/dispatch.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import type { ValueStore } from '../../sdk/declare/values.ts'
import { checkBytes, checkStoredPath, throwMissing } from './stored-file.ts'
import type { StoredTables } from './stored-tables.ts'

export interface ValueStorage {
  readonly store: ObjectStore
  /** Where an object lies as a file, if the store is a folder: DuckDB reads it there. */
  readonly fileOf?: (path: string) => string
  /** What relative URIs of sources start from. */
  readonly projectDir: string
}

/** Reads what attempts stored. */
export function valuesIn(storage: ValueStorage): Pick<ValueStore, 'readJson' | 'readBytes' | 'openTable' | 'runSql'> {
  // Parquet is loaded when first used: it is a quarter of the time in which a worker starts.
  let opening: Promise<StoredTables> | undefined
  const tables = (): Promise<StoredTables> => {
    opening ??= import('./stored-tables.ts').then(({ storedTables }) => storedTables(storage))
    return opening
  }

  async function read(value: StoredValue): Promise<Uint8Array> {
    const { path } = value
    if (typeof value.value === 'string') return inlineBytes(value.value, value)
    if (path) checkStoredPath(path, storage.fileOf)
    const bytes = (path ? await storage.store.get(path) : undefined) ?? throwMissing(String(path))
    checkBytes(String(path), bytes, value)
    return bytes
  }

  return {
    readJson: async (value) => JSON.parse(new TextDecoder('utf-8', { ignoreBOM: true }).decode(await read(value))),
    readBytes: read,
    openTable: async (ref, columns) => (await tables()).open(ref, columns),
    async *runSql(query, named, columns) {
      yield* (await tables()).query(query, named, columns)
    },
  }
}

/** The bytes of a value that has no file. */
export function inlineBytes(text: string, value: StoredValue): Uint8Array {
  const bytes = new TextEncoder().encode(text)
  checkBytes(`the recorded value of ${value.materialization_id}`, bytes, value)
  return bytes
}
