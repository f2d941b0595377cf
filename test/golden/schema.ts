import type { Columns } from '../../src/model/column.ts'
import type { Table } from '../../src/model/table.ts'

/** What others rely on in a table: its columns as they are stored, its key, and how rows come to be one. */
export interface TableSchema {
  readonly table: string
  readonly key: readonly string[]
  readonly storage: Table['storage']
  readonly columns: Readonly<Record<string, ColumnSchema>>
}

export interface ColumnSchema {
  readonly kind: string
  readonly nullable: boolean
  readonly values?: readonly string[]
}

export function schemaOf(table: Table): TableSchema {
  const columns = Object.entries(table.stored as Columns).map(([name, { kind, nullable, values }]) => [
    name,
    { kind, nullable, ...(values === undefined ? {} : { values }) },
  ])
  return {
    table: table.name,
    key: table.key,
    storage: table.storage,
    columns: Object.fromEntries(columns) as Record<string, ColumnSchema>,
  }
}

/**
 * What in `current` would break files that were written, or queries that were written, with `golden`. A new column that
 * may be null breaks nothing: older files read as null. So does a new value of a column that names a state.
 */
export function compareSchemas(golden: TableSchema, current: TableSchema): string[] {
  const broken: string[] = []
  const { table } = golden
  if (golden.key.join() !== current.key.join())
    broken.push(`${table}: the key was (${golden.key.join(', ')}) and is (${current.key.join(', ')})`)
  if (golden.storage.kind !== current.storage.kind) {
    broken.push(`${table}: rows were ${golden.storage.kind} and are ${current.storage.kind}`)
  } else if (JSON.stringify(golden.storage) !== JSON.stringify(withoutNew(current.storage, golden.columns))) {
    broken.push(`${table}: rows are stored or merged by another rule`)
  }
  for (const [name, before] of Object.entries(golden.columns)) {
    const after = current.columns[name]
    if (after === undefined) broken.push(`${table}.${name} is gone`)
    else broken.push(...compareColumns(`${table}.${name}`, before, after))
  }
  for (const [name, { nullable }] of Object.entries(current.columns)) {
    if (golden.columns[name] === undefined && !nullable)
      broken.push(`${table}.${name} is new and must not be null, but older files do not have it`)
  }
  return broken
}

/** The rule as it is for the columns that were there before: a new one may join a group, or stand before one that a group is picked by. */
function withoutNew(storage: Table['storage'], known: TableSchema['columns']): Table['storage'] {
  if (storage.kind === 'hot') return storage
  const merge = storage.merge.map((group) => ({
    ...group,
    by: group.by.map((name) => (typeof name === 'string' || name[0] in known ? name : name[1])),
    columns: group.columns.filter((name) => name in known),
  }))
  return { ...storage, merge }
}

function compareColumns(name: string, before: ColumnSchema, after: ColumnSchema): string[] {
  const broken: string[] = []
  if (before.kind !== after.kind) broken.push(`${name} was ${before.kind} and is ${after.kind}`)
  if (before.nullable && !after.nullable) broken.push(`${name} may be null in older files, but must not be any more`)
  if (!before.nullable && after.nullable) broken.push(`${name} was never null, and readers rely on it`)
  const lost = before.values?.filter((value) => after.values !== undefined && !after.values.includes(value)) ?? []
  if (lost.length > 0) broken.push(`${name} may be ${lost.join(', ')} in older files, which is no value of it any more`)
  return broken
}
