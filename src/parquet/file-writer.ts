import type { CompressionCodec, Encoding, KeyValue, RowGroup, SchemaElement } from 'hyparquet'
import { ByteWriter, ParquetWriter } from 'hyparquet-writer'
import { deltaBinaryPack } from 'hyparquet-writer/src/delta.js'
import { compressors } from './codecs.ts'

/*
 * Everything that depends on the internals of hyparquet-writer is here, so that an upgrade breaks one file. We change the unfinished
 * footer in three ways for which the writer has no option: we remove statistics that would mislead readers, add our own Bloom filters,
 * and replace the schema by one with JSON columns.
 */

/** The values of one column for one row group. */
export interface ColumnOfGroup {
  readonly name: string
  readonly values: readonly unknown[]
  /** The statistics that the footer has: only the number of nulls, or none. Without this, also the smallest and the largest value. */
  readonly statistics?: 'nulls' | 'none'
  readonly encoding?: Encoding
  readonly codec?: CompressionCodec
}

export interface FileWriterOptions {
  /** The schema that the file declares. */
  readonly schema: readonly SchemaElement[]
  readonly codec: 'SNAPPY' | 'ZSTD'
}

/** Writes a Parquet file into memory, row group by row group. */
export class FileWriter {
  readonly #schema: readonly SchemaElement[]
  readonly #output = new ByteWriter()
  readonly #parquet: ParquetWriter

  constructor({ schema, codec }: FileWriterOptions) {
    this.#schema = schema
    this.#parquet = new ParquetWriter({ writer: this.#output, schema: schema.map(withoutJson), codec, compressors })
  }

  /** Writes a row group, and returns its bytes, which are good until the next one is written. */
  write(columns: readonly ColumnOfGroup[], rows: number, options: { readonly pageSize?: number } = {}): Uint8Array {
    const start = this.#output.offset
    this.#parquet.write({
      columnData: columns.map(({ name, values, encoding, codec }) => ({
        name,
        // The writer does not change it.
        data: values as unknown[],
        offsetIndex: false,
        ...(encoding && { encoding }),
        ...(codec && { codec }),
      })),
      rowGroupSize: rows,
      ...options,
    })
    const misleading = columns.filter(({ statistics }) => statistics !== undefined)
    if (misleading.length > 0)
      dropStatistics(this.#lastGroup, new Map(misleading.map((column) => [column.name, column.statistics])))
    return this.#output.getBytes().subarray(start)
  }

  /**
   * Gives columns of the last row group these Bloom filters. The writer can make them itself, but hashes with BigInt: four
   * microseconds a value against less than one.
   */
  addBloomFilters(filters: ReadonlyMap<string, Uint32Array>): void {
    for (const chunk of this.#lastGroup.columns) {
      const filter = filters.get(chunk.meta_data?.path_in_schema[0] ?? '')
      const pending = filter && this.#parquet.pendingIndexes.find((index) => index.chunk === chunk)
      if (pending) pending.bloomFilter = filter
    }
  }

  /** The file. Nothing can be written afterwards. */
  finish(metadata: Readonly<Record<string, string>>): Uint8Array<ArrayBuffer> {
    this.#parquet.kvMetadata = Object.entries(metadata).map(([key, value]): KeyValue => ({ key, value }))
    this.#parquet.schema = [...this.#schema]
    this.#parquet.finish()
    return new Uint8Array(this.#output.getBuffer())
  }

  get #lastGroup(): RowGroup {
    return this.#parquet.row_groups.at(-1)!
  }
}

/** The writer would serialize JSON in its own way, so it gets our canonical text as plain bytes. */
function withoutJson(element: SchemaElement): SchemaElement {
  if (element.converted_type !== 'JSON') return element
  const { converted_type: _, logical_type: __, ...plain } = element
  return plain
}

/** The writer has one switch for all statistics; taking the wrong ones out of the unfinished footer spares the others. */
function dropStatistics(group: RowGroup, columns: ReadonlyMap<string, ColumnOfGroup['statistics']>): void {
  for (const { meta_data } of group.columns) {
    const kept = columns.get(meta_data?.path_in_schema[0] ?? '')
    if (meta_data?.statistics === undefined || kept === undefined) continue
    const { null_count } = meta_data.statistics
    if (kept === 'none') delete meta_data.statistics
    else if (null_count !== undefined) meta_data.statistics = { null_count }
  }
}

/** Whole numbers as the writer packs them in a page: as differences. The tests of our reader start from these bytes. */
export function packDeltas(values: readonly bigint[]): Uint8Array {
  const output = new ByteWriter()
  deltaBinaryPack(output, [...values])
  return output.getBytes()
}
