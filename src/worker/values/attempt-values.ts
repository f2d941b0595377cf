import { type OutputPlace, outputFolder } from '../../contract/output-path.ts'
import { sha256 } from '../../lib/hash.ts'
import type { ValueStore, Written } from '../../sdk/declare/values.ts'
import { invalid } from '../../sdk/invalid.ts'
import { storedValues, type ValueStorage } from './stored-values.ts'

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

  async function write(ending: string, bytes: Uint8Array, rows?: number): Promise<Written> {
    const path = `${name}.${ending}`
    await store.create(path, bytes)
    const written = { path, bytes: bytes.byteLength, dataVersion: sha256(bytes) }
    return rows === undefined ? written : { ...written, rows }
  }

  return {
    ...storedValues(storage),
    writeJson(json) {
      const bytes = new TextEncoder().encode(json)
      if (bytes.byteLength > MAX_JSON_BYTES)
        throw invalid(
          'value_too_large',
          `the value of ${making.assetKey} is ${Math.round(bytes.byteLength / 1e6)} MB of JSON; the limit is ${MAX_JSON_BYTES / 2 ** 20} MB`,
          'Make it a table, or give the asset an io.',
        )
      return write('json', bytes)
    },
    writeBytes: (bytes) => write('bin', bytes),
    async writeRows(rows, columns) {
      const { encodeRows } = await import('./rows-write.ts')
      const encoded = await encodeRows(rows, columns)
      return write('parquet', encoded.bytes, encoded.rows)
    },
  }
}
