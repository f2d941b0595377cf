/** The elements of a schema that have to be spelled out, for our files to be what DuckDB expects. */
export const TEXT = { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } } as const

/** With the old converted type as well, or DuckDB sees a BLOB. */
export const JSON_TEXT = { type: 'BYTE_ARRAY', converted_type: 'JSON', logical_type: { type: 'JSON' } } as const

/** The writer's own shorthand writes local time; spelled out, DuckDB reads a TIMESTAMP WITH TIME ZONE. */
export const MOMENT = {
  type: 'INT64',
  logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MILLIS' },
} as const
