import { describe, expect, test } from 'vitest'
import { SECOND_MS } from '../../lib/time.ts'
import { type Controller, MAX_LAG_MS, mustWait } from '../../model/controller.ts'
import { type RunStory, Story } from '../../testing/histories/story.ts'
import { dispatchController } from '../dispatch/dispatch.controller.ts'
import type { Limits } from '../dispatch/room.ts'
import { alarmController } from '../timers/alarm.controller.ts'
import { retryController, retryDelayMs } from '../timers/retry.controller.ts'
import { TimerRequested } from '../timers/timer-requested.event.ts'
import { lostWorkersController } from './lost-workers.controller.ts'

/** Shows a controller every row there is, as a process that has just started does, and asks it once. */
function asked(story: Story, controller: Controller, more: { after?: number; lagMs?: number } = {}) {
  for (const table of controller.watches) {
    for (const row of story.bench.state.hotTable(table).all()) controller.observe(table, row)
  }
  const { after = 0, lagMs = 0 } = more
  const now = Date.parse(story.time()) + after
  // As the loop does it.
  if (lagMs > MAX_LAG_MS && mustWait(controller, now)) return []
  return controller
    .decide({ rows: story.bench.state, now, lagMs })
    .flat()
    .map((event) => ({
      type: event.definition.type,
      key: event.definition.idempotencyKey(event.payload),
      payload: event.payload,
    }))
}

const room: Limits = { local: 10, ahead: 0, queues: {} }

const twoTasks = (): { story: Story; run: RunStory } => {
  const story = new Story()
  return { story, run: story.run('report', { a: [], b: [], c: ['a'] }, { attempts: 3 }) }
}

test('[E7] a process begins no task of a run that it does not carry, and what was dispatched of such a run takes no room', () => {
  const story = new Story()
  const left = story.run('left', { a: [], b: [] })
  left.dispatched('a')
  const own = story.run('own', { a: [], b: [] })
  const carries = (runId: string): boolean => runId === own.runId
  const one = asked(
    story,
    dispatchController(() => ({ local: 1, ahead: 0, total: 1, queues: {} }), carries),
  )
  expect(one).toMatchObject([{ type: 'DispatchRequested', payload: { run_id: own.runId } }])
  // Once somebody asks for it, it takes room like any other.
  expect(
    asked(
      story,
      dispatchController(() => ({ local: 1, ahead: 0, queues: {} })),
    ),
  ).toEqual([])
})

test.each([
  ['x', 'y'],
  ['y', 'x'],
])(
  '[D1] of equally urgent tasks the one that has waited longer goes first, whatever it is called: %s before %s',
  (...names) => {
    const story = new Story()
    const [first] = names.map((name) => story.run(name, { a: [] }))
    const next = asked(
      story,
      dispatchController(() => ({ local: 1, ahead: 0, queues: {} })),
    )
    expect(next).toMatchObject([{ payload: { run_id: first?.runId } }])
  },
)

describe('a controller that starts anew', () => {
  test('[O3][I15][I16] decides the same, under the same keys: asking twice asks for nothing twice', () => {
    const { story } = twoTasks()
    const first = asked(
      story,
      dispatchController(() => room),
    )
    const second = asked(
      story,
      dispatchController(() => room),
    )
    expect(first).toHaveLength(2)
    expect(second).toEqual(first)
  })

  test('[O3] finds a task that is ready although nobody asked for its dispatch', () => {
    const { story } = twoTasks()
    const controller = dispatchController(() => room)
    expect(asked(story, controller)).toHaveLength(2)
    // What it asked for was never written: it is found by looking again, not by remembering.
    expect(
      asked(
        story,
        dispatchController(() => room),
      ).map(({ type }) => type),
    ).toEqual(['DispatchRequested', 'DispatchRequested'])
  })

  test('[O3] finds a task that waits for a retry although nobody set its alarm', () => {
    const { story, run } = twoTasks()
    run.dispatched('a')
    run.failed('a')
    expect(asked(story, retryController()).map(({ type }) => type)).toEqual(['TimerRequested'])
  })

  test('[O3][W2] gives up what ran on workers of a process that is gone, and leaves its own alone', () => {
    const { story, run } = twoTasks()
    run.dispatched('a')
    run.started('a', 1, 'local:old')
    run.dispatched('b')
    run.started('b', 1, 'local:mine')
    expect(asked(story, lostWorkersController('mine'))).toMatchObject([
      { type: 'TaskFinished', payload: { task_key: 'a', outcome: 'FAILED', error_category: 'lost' } },
    ])
  })
})

describe('a retry', () => {
  const failedOnce = (): Story => {
    const { story, run } = twoTasks()
    run.dispatched('a')
    run.failed('a')
    const [timer] = asked(story, retryController())
    story.tell(TimerRequested, timer?.payload as never)
    return story
  }

  test('[O6] does not start while facts may be unread, and does once they are read', () => {
    const story = failedOnce()
    const controller = alarmController()
    expect(asked(story, controller, { after: 600 * SECOND_MS, lagMs: MAX_LAG_MS + 1 })).toEqual([])
    expect(asked(story, controller, { after: 620 * SECOND_MS }).map(({ type }) => type)).toEqual(['TimerFired'])
  })

  test('does not start before it is due', () => {
    const story = failedOnce()
    expect(asked(story, alarmController(), { after: -2 * SECOND_MS })).toEqual([])
  })

  test('[R2] waits longer after every failure, never longer than allowed, and not for as long as its neighbours', () => {
    const policy = { max_attempts: 10, backoff: 'exponential', initial_ms: 1_000, max_ms: 60_000, jitter: false } as const
    expect([1, 2, 3, 4, 9, 900].map((failures) => retryDelayMs(policy, 'a', failures))).toEqual([
      1_000, 2_000, 4_000, 8_000, 60_000, 60_000,
    ])
    expect(retryDelayMs({ ...policy, backoff: 'fixed' }, 'a', 5)).toBe(1_000)
    const spread = new Set(['a', 'b', 'c', 'd', 'e'].map((id) => retryDelayMs({ ...policy, jitter: true }, id, 3)))
    expect(spread.size).toBeGreaterThan(2)
    for (const delay of spread) expect(delay).toBeGreaterThanOrEqual(2_000)
    for (const delay of spread) expect(delay).toBeLessThanOrEqual(4_000)
  })
})
