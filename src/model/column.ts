/** What a column holds: its Parquet type follows from the kind, its TypeScript type from `T`. */
export type ColumnKind = 'string' | 'int' | 'long' | 'double' | 'boolean' | 'timestamp' | 'strings' | 'map' | 'json'

export interface Column<T = unknown> {
  readonly kind: ColumnKind
  readonly nullable: boolean
  readonly doc: string
  /** The only values allowed, for columns that name a state. */
  readonly values?: readonly string[]
  readonly _type?: T
}

type Value<C> = C extends Column<infer T> ? T : never
export type Columns = Readonly<Record<string, Column>>
export type ColumnValues<C extends Columns> = { -readonly [K in keyof C]: Value<C[K]> }

function column<T>(kind: ColumnKind) {
  return (doc: string): Column<T> => ({ kind, nullable: false, doc })
}

/** One function per kind of column; `optional` makes a column nullable. Timestamps are milliseconds since 1970 in memory. */
export const col = {
  string: column<string>('string'),
  /** 32 bits. */
  int: column<number>('int'),
  /** 64 bits in Parquet, a safe integer in memory. */
  long: column<number>('long'),
  double: column<number>('double'),
  boolean: column<boolean>('boolean'),
  timestamp: column<number>('timestamp'),
  strings: column<readonly string[]>('strings'),
  map: column<Readonly<Record<string, string>>>('map'),
  /** Any JSON value, stored as canonical text. */
  json: column<unknown>('json'),
  oneOf: <const V extends readonly string[]>(values: V, doc: string): Column<V[number]> => ({
    kind: 'string',
    nullable: false,
    doc,
    values,
  }),
  optional: <T>(inner: Column<T>): Column<T | null> => ({ ...inner, nullable: true }) as Column<T | null>,
}
