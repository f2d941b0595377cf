// Writes docs/reference and docs/openapi.json from the definitions in src/. A test says when the committed pages are out of date.

import fs from 'node:fs'
import path from 'node:path'
import { z } from 'zod'
import { orchestration } from '../src/domain/index.ts'
import { allTables } from '../src/engine/fold/state.ts'
import { sqlTypes } from '../src/engine/sql/tables.ts'
import type { Columns } from '../src/model/column.ts'
import type { EventDefinition } from '../src/model/event.ts'
import { systemTables } from '../src/model/system-tables.ts'
import type { MergeGroup, Table } from '../src/model/table.ts'
import { cliPage } from './reference/cli.ts'
import { configPage } from './reference/config.ts'
import { errorsPage } from './reference/errors.ts'
import { code, page, row } from './reference/markdown.ts'
import { openApiText } from './reference/openapi.ts'
import { typesPage } from './reference/types.ts'

const folder = path.resolve(import.meta.dirname, '../docs/reference')

/** File name → contents. */
export function referencePages(): Record<string, string> {
  return {
    'tables.md': tablesPage(),
    'events.md': eventsPage(),
    'cli.md': cliPage(),
    'config.md': configPage(),
    'errors.md': errorsPage(),
    'types.md': typesPage(),
    // Beside the pages, not among them: programs read it.
    '../openapi.json': openApiText(),
  }
}

function tablesPage(): string {
  const tables = allTables(orchestration)
  const contents = tables.map((table) => `- [${code(table.name)}](#${table.name}): ${table.doc}`)
  return page(
    '# Tables',
    'The state of a workspace, derived from its ledger. Ask it with [`servo query`](../query.md) or attach it from DuckDB.',
    'Every table also has `tenant_id`, `workspace_id` and `row_version`, the id of the event that decided the row as it stands.',
    contents.join('\n'),
    ...tables.map(tableSection),
  )
}

function tableSection(table: Table): string {
  const types = sqlTypes(table)
  const rows = Object.entries(table.columns as Columns).map(([name, column]) => {
    const values = column.values === undefined ? '' : ` One of ${column.values.map(code).join(', ')}.`
    return row(code(name), types[name] ?? '', column.nullable ? 'yes' : '', column.doc + values)
  })
  const own = systemTables.includes(table as (typeof systemTables)[number]) ? ' The engine keeps it for itself.' : ''
  return [
    `## ${table.name}`,
    `${table.doc}${own}`,
    `Key: ${table.key.map(code).join(', ')}. ${storageText(table)}`,
    [row('column', 'type', 'null', ''), '| --- | --- | --- | --- |', ...rows].join('\n'),
  ].join('\n\n')
}

function storageText({ storage }: Table): string {
  if (storage.kind === 'hot') {
    return storage.sealedWith === undefined
      ? 'Rows stay until they are removed.'
      : `Rows are sealed into history when their row of ${code(storage.sealedWith)} has ended.`
  }
  const expires = storage.expiresBy === undefined ? '' : ` Retention counts from ${code(storage.expiresBy)}.`
  return `Facts about a key are merged, in any order: ${storage.merge.map(groupText).join('; ')}.${expires}`
}

const groupText = ({ pick, by, columns }: MergeGroup): string =>
  `${columns.map(code).join(', ')} from the fact with the ${pick} ${by.map((name) => [name].flat().map(code).join(' or, if null, ')).join(', then ')}`

function eventsPage(): string {
  const { events } = orchestration
  const contents = events.map((event) => `- [${code(event.type)}](#${event.type.toLowerCase()}): ${event.doc}`)
  return page(
    '# Events',
    'The facts and requests that the ledger holds. Everything else is derived from them.',
    'Events may arrive twice, late and in any order, and give the same rows, except for the pairs that an event says are ordered: those follow the order in which the ledger was consumed, which is recorded.',
    contents.join('\n'),
    ...events.map(eventSection),
  )
}

function eventSection(event: EventDefinition): string {
  const repeated =
    event.dedup === 'structure'
      ? 'A repetition changes nothing, however late: the rows show that the fact is known.'
      : 'A repetition is known by its idempotency key, for as long as [`idempotency_keys`](tables.md#idempotency_keys) keeps it.'
  const ordered = (event.ordered ?? []).map(({ with: others, why }) => `- Ordered with ${others.map(code).join(', ')}: ${why}`)
  const schema = z.toJSONSchema(event.payload, { io: 'input', unrepresentable: 'any' })
  delete schema.$schema
  return [
    `## ${event.type}`,
    `${event.doc} Version ${event.version}.`,
    repeated,
    ...(ordered.length > 0 ? [ordered.join('\n')] : []),
    `\`\`\`json\n${JSON.stringify(schema, null, 2)}\n\`\`\``,
  ].join('\n\n')
}

if (import.meta.main) {
  fs.mkdirSync(folder, { recursive: true })
  for (const [name, text] of Object.entries(referencePages())) fs.writeFileSync(path.join(folder, name), text)
}
