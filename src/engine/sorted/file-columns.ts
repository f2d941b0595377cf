import { crc32 } from 'node:zlib'
import { countWhile } from '../../lib/collections/binary-search.ts'
import type { KeyPart } from '../../model/rows.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { unreadable } from '../files/file-ref.ts'
import { compareParts, firstOfKey, type KeyTuple } from '../fold/row-merge.ts'
import { ColumnBlock } from '../parquet/column-block.ts'
import { type Digest, readRange, type SortedFileDescription, type SortedFileIndex } from './index-footer.ts'

/** Rows `from` up to, and without, `to` of a block. */
export interface BlockPart {
  /** The place of the block among the row groups of the file. */
  readonly at: number
  readonly block: ColumnBlock
  readonly from: number
  readonly to: number
  /** For a whole block: its first key, and its last key or else the first key of the block after it. */
  readonly ends?: { readonly first: KeyTuple; readonly last?: KeyTuple; readonly next?: KeyTuple | undefined }
}

/** One request reads as many row groups as fit into this. */
const READ_BYTES = 4 * 1024 * 1024

/** The columns of all rows of a sorted file whose key begins with `first`, in key order. Reads only row groups that may hold some. */
export async function* sortedFileColumns(
  store: ObjectStore,
  index: SortedFileIndex,
  first: KeyPart,
  isWanted: (group: number) => boolean = () => true,
): AsyncGenerator<BlockPart> {
  const { footer, groups, ref } = index
  const among = groupsWith(index, first)
  const last = among.at(-1) ?? -1
  for (let from = among[0] ?? 0; from <= last; ) {
    if (!isWanted(from)) {
      from++
      continue
    }
    let to = from + 1
    const begin = footer.groups[from]!.start
    while (to <= last && isWanted(to) && footer.groups[to]!.end - begin <= READ_BYTES) to++
    const bytes = await readRange(store, ref, begin, footer.groups[to - 1]!.end)
    for (let at = from; at < to; at++) {
      const group = footer.groups[at]!
      const own = bytes.subarray(group.start - begin, group.end - begin)
      if (crc32(own) !== groups[at]!.crc32) throw unreadable(ref.path, `row group ${at} is damaged`)
      const block = new ColumnBlock(footer, group, { start: group.start, bytes: own })
      const ends = endsOf(index, at)
      const isWhole = ends.first[0] === first && (ends.next ?? ends.last)?.[0] === first
      const part = isWhole ? { from: 0, to: block.rows, ends } : partOf(block, firstOfKey(footer.table), first)
      if (part.to > part.from) yield { at, block, ...part }
    }
    from = to
  }
}

/** The row groups of a sorted file that may hold keys that begin with `first`. They are neighbours. */
export function groupsWith({ groups }: SortedFileDescription, first: KeyPart): readonly number[] {
  const last = groups.findLastIndex(({ first_key: [part = first] }) => compareParts(part, first) <= 0)
  let start = groups.findIndex(({ first_key: [part = first] }) => compareParts(part, first) >= 0)
  if (start < 0) start = groups.length
  // The group before may end with such keys.
  if (start > 0 && compareParts(groups[start - 1]?.digest?.last_key?.[0] ?? first, first) >= 0) start--
  return Array.from({ length: Math.max(0, last - start + 1) }, (_, i) => start + i)
}

/** The row groups of a sorted file whose keys all begin with `first`, with their place in it. */
export function* wholeGroups(
  file: SortedFileDescription,
  first: KeyPart,
): Iterable<{ at: number; ends: NonNullable<BlockPart['ends']>; digest: Digest | undefined }> {
  for (const [at, group] of file.groups.entries()) {
    if (group.first_key[0] !== first) continue
    const ends = endsOf(file, at)
    if ((ends.next ?? ends.last)?.[0] === first) yield { at, ends, digest: group.digest }
  }
}

function endsOf({ groups, last_key }: SortedFileDescription, at: number): NonNullable<BlockPart['ends']> {
  const { first_key: first, digest } = groups[at]!
  const next = groups[at + 1]?.first_key
  if (next?.[0] === first[0]) return { first, next }
  const last = next === undefined ? last_key : digest?.last_key
  return last ? { first, last } : { first, next }
}

/** The rows of a block whose key begins with `first`. Rows are in key order, so these stand together. */
function partOf(block: ColumnBlock, name: string, first: KeyPart): Pick<BlockPart, 'from' | 'to'> {
  const texts = block.texts(name)
  return {
    from: countWhile(block.rows, (row) => compareParts(texts.at(row), first) < 0),
    to: countWhile(block.rows, (row) => compareParts(texts.at(row), first) <= 0),
  }
}
