import { parquetMetadata } from 'hyparquet'
import { describe, expect, test } from 'vitest'
import { partitionStatus } from '../../domain/partitions/partition-status.table.ts'
import { runs } from '../../domain/runs/runs.table.ts'
import { encodeSortedFile } from '../sorted/sorted-file.ts'
import { skimFooter } from './footer.ts'
import { encodeTableRows } from './parquet.ts'

const scope = { tenant_id: 'acme', workspace_id: 'prod' }

const statuses = (count: number) =>
  Array.from({ length: count }, (_, i) => ({
    asset_key: 'mart/größe',
    partition_key: String(i).padStart(7, '0'),
    last_materialization_at: 1_736_935_200_000 + i,
    partition_values: i % 2 === 0 ? null : { region: 'eu' },
    row_version: `v${i}`,
  }))

/** What hyparquet makes of it, as far as we need it. */
function expected(bytes: Uint8Array) {
  const { row_groups, ...rest } = parquetMetadata(bytes, { geoparquet: false })
  const blooms = row_groups.map(({ columns }) =>
    columns.flatMap(({ meta_data }) => {
      const { bloom_filter_offset, bloom_filter_length, path_in_schema } = meta_data!
      const start = Number(bloom_filter_offset)
      return start > 0 ? [{ column: path_in_schema[0], start, end: start + Number(bloom_filter_length) }] : []
    }),
  )
  const groups = row_groups.map(({ columns, total_byte_size, num_rows }) => ({
    columns: columns.map(({ file_offset, meta_data }) => {
      const { statistics: _, encoding_stats: __, bloom_filter_offset: ___, bloom_filter_length: ____, ...meta } = meta_data!
      return { file_offset, meta_data: { ...meta, encodings: [] } }
    }),
    total_byte_size,
    num_rows,
  }))
  return { groups, blooms, rest }
}

/** Members that are undefined count as absent. */
const plain = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? `${each}n` : each)))

describe('a footer', () => {
  test.each([
    ['of a sorted file with Bloom filters and several row groups', encodeSortedFile(partitionStatus, statuses(12_345), scope)],
    ['of a small file', encodeTableRows(partitionStatus, statuses(3), scope)],
    ['of a file without rows', encodeTableRows(runs, [], scope)],
  ])('%s is read as hyparquet reads it', (_, bytes) => {
    const { rest, groups } = skimFooter(bytes)
    const { groups: all, blooms, rest: others } = expected(bytes)
    expect(plain(groups.map(({ parquet }) => parquet))).toEqual(plain(all))
    expect(groups.map((group) => group.blooms)).toEqual(blooms)
    expect(plain({ ...parquetMetadata(rest, { geoparquet: false }), row_groups: 0, metadata_length: 0 })).toEqual(
      plain({ ...others, row_groups: 0, metadata_length: 0 }),
    )
  })

  test('says where each row group is, and each of its columns', () => {
    const { groups } = skimFooter(encodeSortedFile(partitionStatus, statuses(12_345), scope))
    expect(groups.map(({ rows }) => rows)).toEqual([5_000, 5_000, 2_345])
    for (const [i, group] of groups.entries()) {
      expect(group.start).toBe(groups[i - 1]?.end ?? 4)
      const [last] = Object.keys(partitionStatus.stored).slice(-1)
      expect(group.chunk('tenant_id')?.start).toBe(group.start)
      expect(group.chunk(last as string)?.end).toBe(group.end)
      expect(group.chunk('wiped_at')?.codec).toBe('UNCOMPRESSED')
      expect(group.chunk('wiped_by')?.codec).toBe('ZSTD')
      expect(group.chunk('nothing')).toBeUndefined()
    }
  })

  test('that is cut off is refused, wherever it is cut', () => {
    const bytes = encodeTableRows(partitionStatus, statuses(3), scope)
    const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(bytes.length - 8, true)
    expect(() => skimFooter(bytes.subarray(bytes.length - length))).toThrow(/not all there/)
    for (let kept = 0; kept < length; kept += 7) {
      const cut = new Uint8Array(kept + 8)
      cut.set(bytes.subarray(bytes.length - 8 - length, bytes.length - 8 - length + kept))
      new DataView(cut.buffer).setUint32(kept, kept, true)
      expect(() => skimFooter(cut)).toThrow(/ends too early/)
    }
  })
})
