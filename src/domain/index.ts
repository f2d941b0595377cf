import type { Registry } from '../model/event.ts'
import * as events from './events.ts'
import * as tables from './tables.ts'

/** The orchestration domain: every table of tables.ts and every event of events.ts, by name. */
export const orchestration: Registry = {
  tables: Object.values(tables).toSorted((a, b) => (a.name < b.name ? -1 : 1)),
  events: Object.values(events).toSorted((a, b) => (a.type < b.type ? -1 : 1)),
}
