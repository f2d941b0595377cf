import { quoteName, quoteText } from '../../lib/sql/sql-text.ts'
import type { Registry } from '../../model/event.ts'
import type { Table } from '../../model/table.ts'
import { allTables } from '../fold/state.ts'
import { emptyLayer, layersOf, READ_OPTIONS, type Relations, type SqlLayer, tableQuery } from './tables.ts'

/** Pages that lead to pages that lead to entries: with 16 to a page, more history than any workspace has. */
const PAGE_LEVELS = 7

/** Relative to the folder of the workspace, in which the script is run. */
const MANIFEST = 'manifests/orchestration.manifest.json'

/**
 * A script that shows the newest published state to any DuckDB: one view per table. It is the same for every workspace
 * and every publish, because it reads the copy of the manifest when it is run. Everything it makes is temporary. What follows it may read the
 * views.
 */
export function attachScript(registry: Registry): string {
  const tables = allTables(registry)
  return [HEADER, manifestFiles(), ...tables.map(attachTable), FOOTER].join('\n')
}

/** What the script makes besides the tables. */
export const ATTACH_NAMES = ['servo_files', 'servo_data', 'servo_entries'] as const

const HEADER = `-- Servo: the state of this workspace as DuckDB views, one per table, and the data of its assets. Written by servo attach.
-- Run it in the folder it lies in, with DuckDB 1.2 or newer:   duckdb -init attach.sql
-- The views show the state as it was published when the script ran; run it again (.read attach.sql) for a newer one.
`

const FOOTER = `DROP TABLE temp.servo_entries;
`

/** Which files there are, by table and layer. Old history is in pages; each step opens the pages that the step before it named. */
function manifestFiles(): string {
  const step = `SET VARIABLE servo_pages = (SELECT coalesce(list(servo_local(item ->> '$.path')), []) FROM servo_entries WHERE (item -> '$.tables') IS NULL);
DELETE FROM servo_entries WHERE (item -> '$.tables') IS NULL;
INSERT INTO servo_entries SELECT unnest(content::JSON -> '$.page[*]') FROM read_text(list_concat([${quoteText(MANIFEST)}], getvariable('servo_pages')));`
  return `CREATE OR REPLACE TEMP MACRO servo_local(path) AS regexp_replace(path, '^tenant=[^/]*/workspace=[^/]*/', '');
SET VARIABLE servo_manifest = (SELECT content::JSON -> '$.manifest' FROM read_text(${quoteText(MANIFEST)}));

CREATE OR REPLACE TEMP TABLE servo_entries AS SELECT unnest(list_concat(getvariable('servo_manifest') -> '$.history.levels[*][*]', getvariable('servo_manifest') -> '$.open_history[*]')) AS item;
${Array(PAGE_LEVELS).fill(step).join('\n')}
SET VARIABLE servo_pages = (SELECT error('The history has more levels of pages than this script reads: run servo attach of a newer Servo.') FROM servo_entries WHERE (item -> '$.tables') IS NULL LIMIT 1);

CREATE OR REPLACE TEMP TABLE servo_files AS
WITH manifest AS (SELECT getvariable('servo_manifest') AS m),
l0 AS (SELECT unnest(m -> '$.l0[*]') AS delta FROM manifest),
deltas AS (SELECT unnest(map_entries((delta -> '$.tables')::MAP(VARCHAR, JSON))) AS e FROM l0),
files AS (
  SELECT e.key AS table_name, 'base' AS layer, e.value ->> '$.path' AS path FROM (SELECT unnest(map_entries((m -> '$.base.tables')::MAP(VARCHAR, JSON))) AS e FROM manifest)
  UNION ALL SELECT e.key, 'l0', e.value ->> '$.rows.path' FROM deltas
  UNION ALL SELECT e.key, 'removed', e.value ->> '$.removed.path' FROM deltas
  UNION ALL SELECT e.key, 'versions', e.value ->> '$.rows.path' FROM deltas
  UNION ALL SELECT e.key, 'versions', unnest(e.value ->> '$[*].path') FROM (SELECT unnest(map_entries((m -> '$.runs')::MAP(VARCHAR, JSON))) AS e FROM manifest)
  UNION ALL SELECT e.key, 'history', e.value ->> '$.path' FROM (SELECT (item ->> '$.publish')::BIGINT AS publish, unnest(map_entries((item -> '$.tables')::MAP(VARCHAR, JSON))) AS e FROM servo_entries)
    WHERE publish >= coalesce(((getvariable('servo_manifest') -> '$.dropped') ->> e.key)::BIGINT, 0)
)
SELECT table_name, layer, servo_local(path) AS path FROM files WHERE path IS NOT NULL;

-- The SQL that adds the files of one layer of one table to its empty shape.
CREATE OR REPLACE TEMP MACRO servo_layer(of_table, of_layer) AS (
  SELECT coalesce(' UNION ALL BY NAME SELECT * FROM read_parquet([' || string_agg('''' || replace(path, '''', '''''') || '''', ', ' ORDER BY path) || '], ${READ_OPTIONS})', '')
  FROM servo_files WHERE table_name = of_table AND layer = of_layer
);
`
}

function attachTable(table: Table): string {
  const relations: Relations = {}
  const variables = layersOf(table).map((layer) => {
    const variable = variableOf(table, layer)
    relations[layer] = `query(getvariable(${quoteText(variable)}))`
    const shape = quoteText(emptyLayer(table, layer))
    return `SET VARIABLE ${variable} = ${shape} || servo_layer(${quoteText(table.name)}, ${quoteText(layer)});\n`
  })
  return `-- ${table.name}: ${table.doc}
${variables.join('')}CREATE OR REPLACE TEMP VIEW ${quoteName(table.name)} AS
${tableQuery(table, relations)};
`
}

/** Table names are snake_case, so these need no quotes. */
const variableOf = (table: Table, layer: SqlLayer): string => `servo_${table.name}_${layer}`
