import { expect, test } from 'vitest'
import { assetDefinition } from '../../contract/project-manifest.ts'
import { toMs } from '../../lib/time.ts'
import { RunStory, Story } from '../../testing/histories/story.ts'
import { AssetsDefined } from '../assets/assets-defined.event.ts'
import type { PlanPart } from '../planning/plan-parts.ts'
import { PlanCreated } from '../tasks/plan-created.event.ts'
import { planController } from './plan.controller.ts'

const KEYS = 5_000

function define(story: Story, keys: number): void {
  const partitions = { type: 'keys' as const, keys: Array.from({ length: keys }, (_, i) => `key${i}`) }
  const definition = assetDefinition.parse({ asset_key: 'orders', kind: 'asset', partitions })
  story.tell(AssetsDefined, { graph_version: `g${keys}`, assets: [{ asset_key: 'orders', asset_id: 'orders', definition }] })
}

/** What a process that has just started decides. */
function decided(story: Story): PlanPart[] {
  const controller = planController()
  const rows = story.bench.state
  for (const table of controller.watches) for (const row of rows.hotTable(table).all()) controller.observe(table, row)
  const events = controller.decide({ rows, now: toMs(story.time()), lagMs: 0 }).flat()
  return events.map(({ payload }) => payload as PlanPart)
}

/** A crash came after the first of several segments that hold the plan. */
function halfPlanned() {
  const story = new Story()
  define(story, KEYS)
  const run = new RunStory(story, 'large')
  run.requested(['orders'], ['*'])
  const parts = decided(story)
  expect(parts.length).toBeGreaterThan(2)
  story.tell(PlanCreated, parts[0]!)
  return { story, run, parts }
}

test('[V1] a plan of which a crash left only some parts is completed, and the run begins', () => {
  const { story, run, parts } = halfPlanned()
  const rest = decided(story)
  expect(rest).toEqual(parts.slice(1))
  for (const part of rest) story.tell(PlanCreated, part)
  expect(run.row).toMatchObject({ state: 'PENDING', error: null, tasks_total: KEYS, plan_parts_seen: parts.length })
  expect(new Set(Object.values(run.states))).toEqual(new Set(['READY']))
  expect(decided(story)).toEqual([])
})

test('[V1] if the rest of a plan cannot be written any more because the project has changed, the run fails and says so', () => {
  const { story, run } = halfPlanned()
  define(story, 10)
  for (const part of decided(story)) story.tell(PlanCreated, part)
  expect(run.row).toMatchObject({
    state: 'FAILED',
    error: expect.stringContaining(
      'the server stopped while it wrote the plan, and the project or its partitions have changed since. Request the run again.',
    ),
  })
  expect(decided(story)).toEqual([])
})

test('of many requests at once, some hundred are planned at a time, each once', () => {
  const story = new Story()
  define(story, 1)
  for (let i = 0; i < 1_200; i++) new RunStory(story, `run${i}`).requested(['orders'], ['*'])
  const controller = planController()
  const rows = story.bench.state
  for (const table of controller.watches) for (const row of rows.hotTable(table).all()) controller.observe(table, row)
  const turns = Array.from({ length: 4 }, () => controller.decide({ rows, now: toMs(story.time()), lagMs: 0 }).flat())
  expect(turns.map((turn) => turn.length)).toEqual([500, 500, 200, 0])
  expect(new Set(turns.flat().map(({ payload }) => (payload as PlanPart).run_id)).size).toBe(1_200)
})
