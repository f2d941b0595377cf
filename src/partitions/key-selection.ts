import { z } from 'zod'
import { itemAt } from '../lib/collections/item-at.ts'
import { ServoError } from '../lib/error.ts'
import { allOf, type KeyRange, keyRange, partsOf, someOf } from './key-range.ts'
import { type PartitionSet, positionIn } from './partition-set.ts'
import { type Spans, span, union } from './spans.ts'

const key = z.string().min(1)
/** A key, or the keys from one to another, both included; without an end it goes as far as there are keys. */
const piece = z.union([key, z.strictObject({ from: key.optional(), to: key.optional() })])
const pieces = z.union([z.literal('all'), z.array(piece)])

/**
 * Which partitions a request is about, small however many they are: `all`, a list of keys and ranges, or for several
 * dimensions the product of such lists: `{ date: [{ from: '2025-01-01', to: '2025-12-31' }], region: ['eu'] }`. A dimension
 * that is left out is taken whole.
 */
export const keySelection = z.union([pieces, z.record(z.string(), pieces)])

export type KeySelection = z.infer<typeof keySelection>
type Pieces = z.infer<typeof pieces>

/** The selected partitions, which must all exist, as ranges that do not overlap. */
export function rangesOf(set: PartitionSet, selection: KeySelection): readonly KeyRange[] {
  if (selection === 'all') return [allOf(set)]
  const single = set.dimensions.length === 0
  if (!Array.isArray(selection)) return [keyRange(set, single ? refuseNames(selection) : spansByName(set, selection))]
  if (single) return [keyRange(set, [spansOf(set, selection)])]
  return someOf(
    set,
    selection.map((one) => positionIn(set, typeof one === 'string' ? one : refuseRange(set))),
  )
}

/**
 * The selection of what a range holds now. Unlike `all` or an open end it does not grow with the set, as long as keys are
 * only added after the last.
 */
export function selectionOf(range: KeyRange): KeySelection {
  const lists = partsOf(range.set).map((set, i) =>
    itemAt(range.spans, i).list.map(({ from, to }) => (from === to ? set.at(from) : { from: set.at(from), to: set.at(to) })),
  )
  if (range.set.dimensions.length === 0) return lists[0] ?? []
  return Object.fromEntries(range.set.dimensions.map(({ name }, i) => [name, lists[i] ?? []]))
}

function spansByName(set: PartitionSet, selection: Readonly<Record<string, Pieces>>): readonly Spans[] {
  const names = set.dimensions.map(({ name }) => name)
  const unknown = Object.keys(selection).find((name) => !names.includes(name))
  if (unknown !== undefined)
    throw badSelection(
      `unknown dimension \`${unknown}\``,
      `Select by ${names.join(', ')}, or omit a dimension to select all of it.`,
    )
  const selected = new Map(Object.entries(selection))
  return set.dimensions.map(({ name, set }) => spansOf(set, selected.get(name) ?? 'all'))
}

function spansOf(set: PartitionSet, selected: Pieces): Spans {
  if (selected === 'all') return span(0, set.count - 1)
  return union(selected.map((one) => (typeof one === 'string' ? spanOf(set, one, one) : spanOf(set, one.from, one.to))))
}

function spanOf(set: PartitionSet, from: string | undefined, to: string | undefined): Spans {
  const first = from === undefined ? 0 : positionIn(set, from)
  const last = to === undefined ? set.count - 1 : positionIn(set, to)
  if (from !== undefined && to !== undefined && last < first) throw reversed(from, to)
  return span(first, last)
}

const reversed = (from: string, to: string): ServoError =>
  new ServoError('invalid', 'bad_partition_selection', `the range is reversed: ${from} comes after ${to}`, {
    hint: `Swap them: ${to}..${from}.`,
  })

function refuseNames(selection: object): never {
  throw badSelection(
    `it names the dimensions ${Object.keys(selection).join(', ')}, but these partitions have a single one`,
    "Write an array: ['2025-01-15', { from: '2025-02-01', to: '2025-02-28' }].",
  )
}

function refuseRange(set: PartitionSet): never {
  const names = set.dimensions.map(({ name }) => name)
  throw badSelection(
    `a range from one key to another cannot select ${names.join(' and ')} separately`,
    `Select by dimension: { ${names[0]}: [{ from: …, to: … }] }.`,
  )
}

function badSelection(why: string, hint: string): ServoError {
  return new ServoError('invalid', 'bad_partition_selection', `The partitions cannot be selected: ${why}`, { hint })
}
