import type { Registry } from '../model/event.ts'
import * as events from './events.ts'
import * as tables from './tables.ts'

/** The orchestration domain: every table of tables.ts and every event of events.ts. */
export const orchestration: Registry = { tables: Object.values(tables), events: Object.values(events) }
