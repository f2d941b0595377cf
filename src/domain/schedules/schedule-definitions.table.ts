import { overlapPolicies } from '../../contract/overlap-policies.ts'
import { col } from '../../model/column.ts'
import { defineTable, type Row } from '../../model/table.ts'

export const scheduleOrigins = ['code', 'api'] as const

export const scheduleDefinitions = defineTable({
  name: 'schedule_definitions',
  doc: 'Schedules as declared. Their row_version is the definition version that ticks carry.',
  key: ['schedule_id'],
  storage: { kind: 'hot' },
  columns: {
    schedule_id: col.string('Stable id.'),
    schedule_name: col.string('Name, free to change.'),
    description: col.optional(col.string('What it is for.')),
    origin: col.oneOf(scheduleOrigins, 'Where it is declared: in the code of the project, or over the API.'),
    cron_expressions: col.strings('Its cron expressions. It ticks when any of them does.'),
    timezone: col.string('IANA time zone of the cron expressions.'),
    start_at: col.optional(col.timestamp('No tick is before this.')),
    end_at: col.optional(col.timestamp('No tick is after this.')),
    asset_selection: col.strings('What each tick runs.'),
    partition_selection: col.optional(col.strings('Partitions; null for the window that just closed.')),
    partition_offset: col.int('How many windows to go back from the one that just closed.'),
    catchup_window_minutes: col.int('How old a missed tick may be and still run.'),
    max_catchup_ticks: col.optional(
      col.int('How many missed ticks run at most; null for 3 if its selection has partitions, otherwise 1.'),
    ),
    catch_up_on_resume: col.boolean('Whether ticks missed while paused are caught up.'),
    overlap: col.optional(
      col.oneOf(
        overlapPolicies,
        'What a tick does while a run of an earlier tick is unfinished; null if both run at the same time.',
      ),
    ),
    labels: col.map('Labels of its runs.'),
    priority: col.int('Priority of its runs.'),
    pause_after: col.optional(col.int('It pauses itself after this many failed runs in a row.')),
    enabled: col.boolean('A disabled schedule does nothing at all.'),
    has_condition: col.boolean('True if its code decides at each tick whether it runs.'),
    condition_timeout_ms: col.int('How long its condition may take.'),
    file: col.optional(col.string('Where it is declared.')),
    line: col.optional(col.int('The line there.')),
    definition_hash: col.string('Hash of the declaration, to notice changes.'),
    renamed_from: col.optional(col.string('Its former name.')),
    created_at: col.timestamp('When it was first declared.'),
    defined_at: col.timestamp('When it was last changed.'),
    removed_at: col.optional(col.timestamp('When it was deleted, or was no longer declared.')),
  },
})

export type ScheduleRow = Row<typeof scheduleDefinitions>
