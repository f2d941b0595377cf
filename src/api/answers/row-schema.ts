import { z } from 'zod'
import type { Column, ColumnKind, Columns } from '../../model/column.ts'
import type { Table } from '../../model/table.ts'
import type { WireValue } from '../wire-row.ts'
import { moment } from './told.ts'

/** The columns of a table that hold JSON: the table does not say of what shape. */
type JsonColumns<C extends Columns> = { [K in keyof C]: C[K] extends Column<unknown, 'json'> ? K : never }[keyof C] & string

type RowShape<C extends Columns> = { [K in keyof C]: z.ZodType<WireValue<C[K]>> } & { row_version: z.ZodString }

/** The schema of a row as JSON shows it, made from the columns of its table and the shapes of those that hold JSON. */
export function rowSchema<C extends Columns>(
  table: Table<C>,
  json: { readonly [K in JsonColumns<C>]: z.ZodType<NonNullable<WireValue<C[K]>>> },
): z.ZodObject<RowShape<C>> {
  const shapes: Readonly<Record<string, z.ZodType | undefined>> = json
  const columns: Columns = table.columns
  const shape = Object.entries(columns).map(([name, column]) => {
    const schema = shapes[name] ?? (column.values === undefined ? ofKind[column.kind] : z.enum(column.values))
    return [name, (column.nullable ? schema.nullable() : schema).describe(column.doc)]
  })
  const version = z.string().describe('Id of the event that decided the row as it stands.')
  const made: unknown = z.object({ ...Object.fromEntries(shape), row_version: version })
  // Each column has the schema of its type in WireValue.
  return made as z.ZodObject<RowShape<C>>
}

const ofKind: Readonly<Record<ColumnKind, z.ZodType>> = {
  string: z.string(),
  int: z.int(),
  long: z.int(),
  double: z.number(),
  boolean: z.boolean(),
  timestamp: moment,
  strings: z.array(z.string()),
  map: z.record(z.string(), z.string()),
  json: z.unknown(),
}
