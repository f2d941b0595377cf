import type { LogicalType, SchemaElement } from 'hyparquet'
import { ServoError } from '../../lib/error.ts'
import type { Column } from '../../model/column.ts'
import type { Table } from '../../model/table.ts'
import { JSON_TEXT, MOMENT, TEXT } from '../../parquet/elements.ts'
import { REPAIR_HINT } from '../files/file-ref.ts'

/** Files record their table, so that a reader refuses the file of another. */
export const FORMAT = '1'

/** The part of a table that its files are made from. It is plain data, so that it can go to another thread. */
export interface FileShape extends Pick<Table, 'name' | 'key' | 'columns' | 'stored' | 'digest' | 'groupRows'> {
  readonly history?: HistoryLayout
}

/** What a history file has that other files of a table do not have. */
export interface HistoryLayout {
  readonly groupRows: number
  /** Columns for which every row group records its values: see `GroupValues`. */
  readonly filters: readonly string[]
}

/** The schema of a table's files: `stored`, column by column. */
export function schemaOf(table: FileShape): SchemaElement[] {
  const columns = Object.entries(table.stored)
  return [{ name: 'servo', num_children: columns.length }, ...columns.flatMap(([name, column]) => elementsOf(name, column))]
}

function elementsOf(name: string, column: Column): SchemaElement[] {
  const top = { name, repetition_type: column.nullable ? 'OPTIONAL' : 'REQUIRED' } as const
  switch (column.kind) {
    case 'string':
      return [{ ...top, ...TEXT }]
    case 'int':
      return [{ ...top, type: 'INT32' }]
    case 'long':
      return [{ ...top, type: 'INT64' }]
    case 'double':
      return [{ ...top, type: 'DOUBLE' }]
    case 'boolean':
      return [{ ...top, type: 'BOOLEAN' }]
    case 'timestamp':
      return [{ ...top, ...MOMENT }]
    case 'json':
      return [{ ...top, ...JSON_TEXT }]
    case 'strings':
      return [
        { ...top, num_children: 1, converted_type: 'LIST', logical_type: { type: 'LIST' } },
        { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
        { name: 'element', repetition_type: 'REQUIRED', ...TEXT },
      ]
    case 'map':
      return [
        { ...top, num_children: 1, converted_type: 'MAP', logical_type: { type: 'MAP' } },
        { name: 'key_value', repetition_type: 'REPEATED', num_children: 2 },
        { name: 'key', repetition_type: 'REQUIRED', ...TEXT },
        { name: 'value', repetition_type: 'REQUIRED', ...TEXT },
      ]
  }
}

/** Which of a table's columns a file holds. */
export interface ReadPlan {
  readonly present: readonly string[]
  /** Columns the file allows to be null. */
  readonly optional: readonly string[]
  /** Columns that the file allows to be null, and the table no longer does. */
  readonly tightened: readonly string[]
}

/**
 * Lets a file of an older or newer version of the table be read: columns it lacks are null, columns we do not know are
 * ignored. Throws for a difference that cannot be bridged, and names the column.
 */
export function planRead(table: FileShape, schema: readonly SchemaElement[], file: string): ReadPlan {
  const found = topLevel(schema)
  const present: string[] = []
  const optional: string[] = []
  for (const [name, column] of rowColumns(table)) {
    const elements = found.get(name)
    if (elements === undefined) {
      if (column.nullable) continue
      throw mismatch('column_missing', table, name, file, `has no column ${table.name}.${name}, which every row must have`)
    }
    const expected = shapeOf(elementsOf(name, column))
    const actual = shapeOf(elements)
    if (actual !== expected) {
      throw mismatch(
        'column_type_changed',
        table,
        name,
        file,
        `stores ${table.name}.${name} as ${actual}, which should be ${expected}`,
      )
    }
    present.push(name)
    if (elements[0]?.repetition_type === 'OPTIONAL') optional.push(name)
  }
  return { present, optional, tightened: optional.filter((name) => !table.stored[name]!.nullable) }
}

/** The columns of a row in memory: those on disk without tenant and workspace, which are the same for all. */
export function rowColumns(table: FileShape): [string, Column][] {
  return Object.entries(table.stored).filter(([name]) => name === 'row_version' || name in table.columns)
}

function topLevel(schema: readonly SchemaElement[]): Map<string, SchemaElement[]> {
  const found = new Map<string, SchemaElement[]>()
  for (let i = 1; i < schema.length; ) {
    const end = subtreeEnd(schema, i)
    found.set((schema[i] as SchemaElement).name, schema.slice(i, end))
    i = end
  }
  return found
}

function subtreeEnd(schema: readonly SchemaElement[], start: number): number {
  let end = start + 1
  for (let child = 0; child < (schema[start]?.num_children ?? 0); child++) end = subtreeEnd(schema, end)
  return end
}

/** The type of a column as text, without its name and without whether it may be null. */
function shapeOf(elements: readonly SchemaElement[]): string {
  return elements
    .map(
      (element, depth) => `${depth === 0 ? '' : `${element.repetition_type} `}${element.type ?? 'GROUP'}${annotation(element)}`,
    )
    .join(' > ')
}

function annotation(element: SchemaElement): string {
  const logical: LogicalType | undefined = element.logical_type
  if (logical === undefined) return element.converted_type === undefined ? '' : `(${element.converted_type})`
  return logical.type === 'TIMESTAMP'
    ? `(TIMESTAMP ${logical.unit}${logical.isAdjustedToUTC ? ' UTC' : ''})`
    : `(${logical.type})`
}

function mismatch(code: string, table: FileShape, column: string, file: string, what: string): ServoError {
  return new ServoError('corrupt', code, `${file} ${what}`, {
    hint: REPAIR_HINT,
    facts: { path: file, table: table.name, column },
  })
}
