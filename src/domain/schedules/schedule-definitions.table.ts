import { col } from '../../model/column.ts'
import { defineTable } from '../../model/table.ts'

export const scheduleDefinitions = defineTable({
  name: 'schedule_definitions',
  doc: 'Schedules as declared. Their row_version is the definition version that ticks carry.',
  key: ['schedule_id'],
  storage: { kind: 'hot' },
  columns: {
    schedule_id: col.string('Stable id.'),
    schedule_name: col.string('Name, free to change.'),
    cron_expressions: col.strings('Fires when any of them does.'),
    timezone: col.string('IANA zone in which they are read.'),
    catchup_window_minutes: col.int('How far back missed ticks are considered.'),
    max_catchup_ticks: col.int('How many missed ticks run at most.'),
    catch_up_on_resume: col.boolean('Whether ticks missed while paused are caught up.'),
    asset_selection: col.strings('What each tick runs.'),
    partition_selection: col.optional(col.strings('Partitions, null for the window that has just closed.')),
    enabled: col.boolean('A disabled schedule does nothing at all.'),
    created_at: col.timestamp('When it was first declared.'),
  },
})
