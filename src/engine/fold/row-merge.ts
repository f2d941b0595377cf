import { assert } from '../../lib/assert.ts'
import { ServoError } from '../../lib/error.ts'
import { canonicalJson } from '../../lib/json.ts'
import type { KeyPart } from '../../model/rows.ts'
import type { AnyRow, MergeGroup, PickedBy, Table } from '../../model/table.ts'

/** All parts of a row's key, in the order of the table. */
export type KeyTuple = readonly KeyPart[]

export function keyOf(table: Pick<Table, 'key'>, row: AnyRow): KeyPart[] {
  return table.key.map((name) => row[name])
}

/** The column that a table's key begins with. */
export function firstOfKey(table: Pick<Table, 'name' | 'key'>): string {
  const [first] = table.key
  assert(first !== undefined, `${table.name} has no key`)
  return first
}

/** A key as text: for messages, and for maps by key. */
export function keyText(key: readonly unknown[]): string {
  return JSON.stringify(key)
}

/**
 * The one order of text and numbers in the engine: JavaScript's `<`, which compares text by UTF-16 code unit. It is not
 * the byte order of UTF-8 that Parquet and DuckDB use; the two disagree about characters beyond U+FFFF.
 */
export function compareParts(a: KeyPart, b: KeyPart): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** The same for values of a column that is part of a key: text or numbers, and all of one kind. */
export function compareKeyParts(a: unknown, b: unknown): number {
  if (typeof a === 'string' && typeof b === 'string') return compareParts(a, b)
  return compareParts(Number(a), Number(b))
}

export function compareTuples(a: KeyTuple, b: KeyTuple): number {
  for (let i = 0; i < a.length; i++) {
    const left = a[i]
    const right = b[i]
    if (left === undefined || right === undefined) return 0
    const order = compareParts(left, right)
    if (order !== 0) return order
  }
  return 0
}

export function compareKeys(table: Table, a: AnyRow, b: AnyRow): number {
  for (const name of table.key) {
    const order = compareParts(a[name], b[name])
    if (order !== 0) return order
  }
  return 0
}

/** Rows in key order, with rows of the same key merged. The input may come in any order. */
export function sortedByKey(table: Table, rows: Iterable<AnyRow>): AnyRow[] {
  const sorted = [...rows].sort((a, b) => compareKeys(table, a, b))
  const unique: AnyRow[] = []
  for (const row of sorted) {
    const last = unique.at(-1)
    if (last !== undefined && compareKeys(table, last, row) === 0) unique[unique.length - 1] = mergeRows(table, last, row)
    else unique.push(row)
  }
  return unique
}

/**
 * Merges two versions of a cold row by the rule in model/table.ts. Commutative, associative and idempotent; neither
 * input changes. A column that is undefined counts as null, so that partial rows can be merged.
 */
export function mergeRows(table: Table, a: AnyRow, b: AnyRow): AnyRow {
  if (a === b) return a
  const plan = mergePlan(table)
  const merged: AnyRow = {}
  for (const name of plan.names) merged[name] = a[name] ?? null
  for (const name of plan.alone) {
    // Two facts disagree about a column without a rule: any choice will do that does not depend on which came first.
    if (compareValues(b[name], merged[name]) > 0) merged[name] = b[name]
  }
  for (const group of plan.groups) {
    if (wins(group, b, a)) for (const name of group.columns) merged[name] = b[name] ?? null
  }
  return merged
}

/** A merge rule made complete: each column belongs to one group, or stands alone. */
export interface MergePlan {
  readonly names: readonly string[]
  /** Columns in no group: the larger value stays, and null is the smallest. */
  readonly alone: readonly string[]
  readonly groups: readonly MergeGroup[]
}

const plans = new WeakMap<Table, MergePlan>()

/**
 * How rows of a table are merged. A group must carry the columns it is picked by: otherwise a merged row would hold the contents of
 * one row and be compared by the values of another, and the result would depend on the order of merging. That goes for
 * `row_version` too: a group that is picked by it carries it, and it is the largest only if it is in no group.
 */
export function mergePlan(table: Table): MergePlan {
  const known = plans.get(table)
  if (known !== undefined) return known
  const rule = table.storage.kind === 'cold' ? table.storage.merge : []
  const names = [...Object.keys(table.columns), 'row_version']
  const free = new Set(names)
  for (const name of table.key) free.delete(name)
  const groups: MergeGroup[] = []
  for (const group of rule) {
    const columns = [...new Set([...group.by.flat(), ...group.columns])].filter((name) => !table.key.includes(name))
    for (const name of columns) {
      if (free.delete(name)) continue
      throw new ServoError('bug', 'bad_merge_rule', `${table.name}.${name} belongs to two merge groups`, {
        hint: 'A group carries the columns it is picked by. Make the two groups one, or give each its own column to be picked by.',
        facts: { table: table.name, column: name },
      })
    }
    groups.push({ pick: group.pick, by: group.by, columns })
  }
  const plan = { names, alone: [...free], groups }
  plans.set(table, plan)
  return plan
}

/** True if `challenger` takes the group from `holder`. */
function wins(group: MergeGroup, challenger: AnyRow, holder: AnyRow): boolean {
  for (const name of group.by) {
    const [theirs, own] = [pickedBy(challenger, name), pickedBy(holder, name)]
    const order = compareValues(theirs, own)
    if (order === 0) continue
    // A null never wins, not even where the smallest does.
    if (isNull(theirs)) return false
    if (isNull(own)) return true
    return group.pick === 'largest' ? order > 0 : order < 0
  }
  // Equal in the columns that pick, but perhaps not in the others: the contents decide, so that it does not matter which came first.
  for (const name of group.columns) {
    const order = compareValues(challenger[name], holder[name])
    if (order !== 0) return order > 0
  }
  return false
}

/** The value by which a row is picked. */
const pickedBy = (row: AnyRow, name: PickedBy): unknown =>
  typeof name === 'string' ? row[name] : (row[name[0]] ?? row[name[1]])

/** A total order of the values of one column, null first. Lists, maps and JSON compare by their canonical text. */
function compareValues(a: unknown, b: unknown): number {
  if (a === b) return 0
  if (isNull(a)) return isNull(b) ? 0 : -1
  if (isNull(b)) return 1
  if (typeof a === 'string' && typeof b === 'string') return compareParts(a, b)
  if (typeof a === 'number' && typeof b === 'number') return compareParts(a, b)
  if (typeof a === 'boolean' && typeof b === 'boolean') return compareParts(Number(a), Number(b))
  return compareParts(canonicalJson(a), canonicalJson(b))
}

function isNull(value: unknown): value is null | undefined {
  return value === null || value === undefined
}
