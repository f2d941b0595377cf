import { expect, test } from 'vitest'
import { type ScheduleDefinitionInput, scheduleDefinition } from '../../contract/schedule.ts'
import { Story } from '../../testing/histories/story.ts'
import { declaredSchedules } from './declared-schedules.ts'
import { ScheduleDefined } from './schedule-defined.event.ts'
import { scheduleDefinitions } from './schedule-definitions.table.ts'

let minted = 0
const mintId = (): string => `id-${++minted}`
const nightly = { name: 'nightly', cron_expressions: ['0 5 * * *'], asset_selection: ['orders'] }

/** Loads a project with these schedules, and returns the types of the events that it wrote. */
function load(story: Story, ...declared: ScheduleDefinitionInput[]): string[] {
  const events = declaredSchedules({
    declared: declared.map((one) => scheduleDefinition.parse(one)),
    known: story.rows(scheduleDefinitions),
    mintId,
  })
  for (const { definition, payload } of events) story.tell(definition, payload as Record<string, unknown>)
  return events.map(({ definition }) => definition.type)
}
const shown = (story: Story) =>
  story.rows(scheduleDefinitions).map(({ schedule_name, removed_at }) => [schedule_name, removed_at === null])

test('[A7] a project that is loaded again as it is writes nothing, even when a schedule moved to another line', () => {
  const story = new Story()
  expect(load(story, nightly)).toEqual(['ScheduleDefined'])
  expect(load(story, { ...nightly, file: 'assets/other.ts', line: 9 })).toEqual([])
})

test('[A7] a renamed schedule keeps its id, a removed one is kept on record, and one that comes back gets its id back', () => {
  const story = new Story()
  load(story, nightly)
  const [id] = story.rows(scheduleDefinitions).map(({ schedule_id }) => schedule_id)
  expect(load(story, { ...nightly, name: 'every-night', renamed_from: 'nightly' })).toEqual(['ScheduleDefined'])
  expect(shown(story)).toEqual([['every-night', true]])
  expect(load(story)).toEqual(['ScheduleRemoved'])
  expect(shown(story)).toEqual([['every-night', false]])
  load(story, { ...nightly, name: 'every-night' })
  expect(story.rows(scheduleDefinitions)).toMatchObject([{ schedule_id: id, removed_at: null }])
})

test('[A7] two schedules never share an id, whatever they were called before', () => {
  const story = new Story()
  load(story, nightly)
  load(story, nightly, { ...nightly, name: 'copy', renamed_from: 'nightly' })
  const ids = story.rows(scheduleDefinitions).map(({ schedule_id }) => schedule_id)
  expect(new Set(ids).size).toBe(2)
})

test('[A8] a load leaves alone what was made over the API', () => {
  const story = new Story()
  const { name: schedule_name, ...rest } = nightly
  const made = { ...rest, schedule_id: 'api-1', schedule_name, origin: 'api' as const, definition_hash: 'h', request_id: 'r' }
  story.tell(ScheduleDefined, made)
  expect(load(story)).toEqual([])
  expect(shown(story)).toEqual([['nightly', true]])
})
