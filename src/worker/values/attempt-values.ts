import type { StoredValue } from '../../contract/dispatch.ts'
import { type OutputPlace, outputFolder } from '../../contract/output-path.ts'
import { ServoError } from '../../lib/error.ts'
import { sha256 } from '../../lib/hash.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import type { ValueStore, Written } from '../../sdk/declare/values.ts'
import { invalid } from '../../sdk/invalid.ts'
import { checkStoredPath } from './stored-file.ts'
import type { StoredTables } from './stored-tables.ts'

export interface ValueStorage {
  readonly store: ObjectStore
  /** Where an object lies as a file, if the store is a folder: DuckDB reads it there. */
  readonly fileOf?: (path: string) => string
  /** What relative URIs of sources start from. */
  readonly projectDir: string
}

/** Whose value is being made. */
export interface Making extends OutputPlace {
  readonly materializationId: string
}

/** A larger value should be a table: a JSON value is held in memory several times while it is read. */
const MAX_JSON_BYTES = 64 * 2 ** 20

/** The values of one attempt: it writes under its own path, and reads what its dispatch names. */
export function attemptValues(storage: ValueStorage, making: Making): ValueStore {
  const { store } = storage
  // No folder of its own: making one, and syncing it, would cost as much as the value.
  const name = `${outputFolder(making.assetKey, making.partitionKey)}${making.materializationId}`

  // Parquet is loaded when first used: it is a quarter of the time in which a worker starts.
  let opening: Promise<StoredTables> | undefined
  const tables = (): Promise<StoredTables> => {
    opening ??= import('./stored-tables.ts').then(({ storedTables }) => storedTables(storage))
    return opening
  }

  async function write(ending: string, bytes: Uint8Array, rows?: number): Promise<Written> {
    const path = `${name}.${ending}`
    await store.create(path, bytes)
    const written = { path, bytes: bytes.byteLength, dataVersion: sha256(bytes) }
    return rows === undefined ? written : { ...written, rows }
  }

  async function read({ path }: StoredValue): Promise<Uint8Array> {
    if (path) checkStoredPath(path, storage.fileOf)
    const bytes = path ? await store.get(path) : undefined
    if (bytes === undefined)
      throw new ServoError('corrupt', 'value_missing', `there is nothing at ${path}`, {
        hint: 'The file was deleted after it was made. Materialize the asset again.',
        facts: { path },
      })
    return bytes
  }

  return {
    writeJson(json) {
      const bytes = new TextEncoder().encode(json)
      if (bytes.byteLength > MAX_JSON_BYTES)
        throw invalid(
          'value_too_large',
          `the value of ${making.assetKey} is ${Math.round(bytes.byteLength / 1e6)} MB of JSON; ${MAX_JSON_BYTES / 2 ** 20} MB are kept at most`,
          'Make it a table, or give the asset an io.',
        )
      return write('json', bytes)
    },
    readJson: async (value) => JSON.parse(new TextDecoder('utf-8', { ignoreBOM: true }).decode(await read(value))),
    writeBytes: (bytes) => write('bin', bytes),
    readBytes: read,
    async writeRows(rows, columns) {
      const { encodeRows } = await import('./rows-write.ts')
      const encoded = await encodeRows(rows, columns)
      return write('parquet', encoded.bytes, encoded.rows)
    },
    openTable: async (ref, columns) => (await tables()).open(ref, columns),
    async *runSql(query, named, columns) {
      yield* (await tables()).query(query, named, columns)
    },
  }
}
