import { col } from '../../model/column.ts'
import { defineTable } from '../../model/table.ts'

export const runValues = defineTable({
  name: 'run_values',
  doc: 'Small values that tasks of unfinished runs made for other tasks of the same run, which read these even if another run has made newer ones.',
  key: ['run_id', 'task_key'],
  // Removed when the run ends.
  storage: { kind: 'hot' },
  columns: {
    run_id: col.string('The run.'),
    task_key: col.string('The task that made the value.'),
    value: col.string('The value as canonical JSON; empty if the ledger no longer has it.'),
  },
})
