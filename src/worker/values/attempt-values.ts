import { type OutputPlace, outputFolder } from '../../contract/output-path.ts'
import { checksumOf } from '../../contract/stored-output.ts'
import type { ValueStore, Written, WrittenFile } from '../../sdk/declare/values.ts'
import { invalid } from '../../sdk/invalid.ts'
import { type ValueStorage, valuesIn } from './stored-values.ts'

/** Whose value is being made. */
export interface Making extends OutputPlace {
  readonly materializationId: string
  /** Up to how many bytes a JSON value is recorded with the end of the attempt: a file of its own would be synced on its own. */
  readonly inlineBytes?: number | undefined
  /** True if the text has a secret in it. The ledger is for ever, so such a value is a file, which can be deleted. */
  readonly hasSecret?: ((text: string) => boolean) | undefined
}

/** A larger value should be a table: a JSON value is held in memory several times while it is read. */
const MAX_JSON_BYTES = 64 * 2 ** 20

/** The values of one attempt: it writes under its own path, and reads what its dispatch names. */
export function attemptValues(storage: ValueStorage, making: Making): ValueStore {
  const { store } = storage
  // No folder of its own: making one, and syncing it, would cost as much as the value.
  const name = `${outputFolder(making.assetKey, making.partitionKey)}${making.materializationId}`

  async function write(ending: string, bytes: Uint8Array, rows?: number): Promise<WrittenFile> {
    const path = `${name}.${ending}`
    await store.create(path, bytes)
    return { path, ...described(bytes), ...(rows !== undefined && { rows }) }
  }

  const isSmall = (json: string, bytes: Uint8Array): boolean =>
    bytes.byteLength <= (making.inlineBytes ?? 0) && !making.hasSecret?.(json)

  return {
    ...valuesIn(storage),
    async writeJson(json, as) {
      const bytes = new TextEncoder().encode(json)
      if (bytes.byteLength > MAX_JSON_BYTES)
        throw invalid(
          'value_too_large',
          `the value of ${making.assetKey} is ${Math.round(bytes.byteLength / 1e6)} MB of JSON; the limit is ${MAX_JSON_BYTES / 2 ** 20} MB`,
          'Make it a table, or give the asset an io.',
        )
      return as !== 'file' && isSmall(json, bytes) ? { value: json, ...described(bytes) } : write('json', bytes)
    },
    writeBytes: (bytes) => write('bin', bytes),
    async writeRows(rows, columns) {
      const { encodeRows } = await import('./rows-write.ts')
      const encoded = await encodeRows(rows, columns)
      return write('parquet', encoded.bytes, encoded.rows)
    },
  }
}

function described(bytes: Uint8Array): Pick<Written, 'bytes' | 'sha256' | 'dataVersion'> {
  const checksum = checksumOf(bytes)
  return { ...checksum, dataVersion: checksum.sha256 }
}
