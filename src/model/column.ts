/** The declaration of a column: its Parquet type follows from the kind, its TypeScript type from `T`. */
export type ColumnKind = 'string' | 'int' | 'long' | 'double' | 'boolean' | 'timestamp' | 'strings' | 'map' | 'json'

export interface Column<T = unknown, K extends ColumnKind = ColumnKind> {
  readonly kind: K
  readonly nullable: boolean
  readonly doc: string
  /** The only values allowed, for columns that name a state. */
  readonly values?: readonly string[]
  readonly _type?: T
}

type Value<C> = C extends Column<infer T> ? T : never
export type Columns = Readonly<Record<string, Column>>
export type ColumnValues<C extends Columns> = { -readonly [K in keyof C]: Value<C[K]> }

function column<T, K extends ColumnKind>(kind: K) {
  return (doc: string): Column<T, K> => ({ kind, nullable: false, doc })
}

/** One function per kind of column; `optional` makes a column nullable. Timestamps are milliseconds since 1970 in memory. */
export const col = {
  string: column<string, 'string'>('string'),
  /** 32 bits. */
  int: column<number, 'int'>('int'),
  /** 64 bits in Parquet, a safe integer in memory. */
  long: column<number, 'long'>('long'),
  double: column<number, 'double'>('double'),
  boolean: column<boolean, 'boolean'>('boolean'),
  timestamp: column<number, 'timestamp'>('timestamp'),
  strings: column<readonly string[], 'strings'>('strings'),
  map: column<Readonly<Record<string, string>>, 'map'>('map'),
  /** Any JSON value, stored as canonical text. `T` is what its events have checked. */
  json: <T = unknown>(doc: string): Column<T, 'json'> => column<T, 'json'>('json')(doc),
  oneOf: <const V extends readonly string[]>(values: V, doc: string): Column<V[number], 'string'> => ({
    kind: 'string',
    nullable: false,
    doc,
    values,
  }),
  optional: <T, K extends ColumnKind>(inner: Column<T, K>): Column<T | null, K> => ({ ...inner, nullable: true }),
}
