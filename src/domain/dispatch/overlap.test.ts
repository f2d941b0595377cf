import { describe, expect, test } from 'vitest'
import { HOUR_MS } from '../../lib/time.ts'
import type { Controller } from '../../model/controller.ts'
import { Story } from '../../testing/histories/story.ts'
import { dispatchController } from './dispatch.controller.ts'
import type { Limits } from './room.ts'

const room: Limits = { local: 10, ahead: 0, queues: {} }
const full: Limits = { local: 1, ahead: 0, queues: {} }
const anew = (limits = room): Controller => dispatchController(() => limits)

/** Shows a controller every row, and says what it decides: a word, the run and the task. */
function decides(story: Story, controller = anew()): string[] {
  for (const table of controller.watches)
    for (const row of story.bench.state.hotTable(table).all()) controller.observe(table, row)
  const events = controller.decide({ rows: story.bench.state, now: Date.parse(story.time()), lagMs: 0 }).flat()
  return events.map(({ definition, payload }) => {
    const { run_id, task_key = '', reason = '', overlap_run_id = '' } = payload as Record<string, string>
    return [definition.type, run_id, task_key, overlap_run_id || reason].filter(Boolean).join(' ')
  })
}

const one = (overlap?: string, more: object = {}) => ({ task: { spec: { overlap }, ...more } })

describe('while a run makes a partition of an asset', () => {
  test('[D8] another makes it at the same time, unless the asset says otherwise', () => {
    const story = new Story()
    story.run('first', { a: [] }, one()).dispatched('a')
    const second = story.run('second', { a: [] }, one())
    expect(decides(story)).toEqual([`DispatchRequested ${second.runId} a`])
  })

  test('[D8] with queue another waits until the task has ended, and holds up nothing else', () => {
    const story = new Story()
    const first = story.run('first', { a: [] }, { attempts: 2, ...one('queue') })
    first.dispatched('a')
    const second = story.run('second', { a: [], b: [] }, one('queue'))
    const controller = anew()
    expect(decides(story, controller)).toEqual([`DispatchRequested ${second.runId} b`])
    second.dispatched('b')
    // Between two attempts it still has the partition.
    first.failed('a')
    expect(decides(story, controller)).toEqual([])
    first.retryDue('a')
    expect(decides(story, controller)).toEqual([`DispatchRequested ${first.runId} a`])
    first.dispatched('a', 2)
    expect(decides(story, controller)).toEqual([])
    expect(decides(story)).toEqual([])
    first.succeeded('a', 2)
    expect(decides(story, controller)).toEqual([`DispatchRequested ${second.runId} a`])
    expect(decides(story)).toEqual([`DispatchRequested ${second.runId} a`])
  })

  test('[D8] of two that are ready at once, one begins', () => {
    const story = new Story()
    const [first, second] = ['first', 'second'].map((name) => story.run(name, { a: [] }, one('queue')))
    const controller = anew()
    expect(decides(story, controller)).toEqual([`DispatchRequested ${first?.runId} a`])
    first?.dispatched('a')
    expect(decides(story, controller)).toEqual([])
    first?.succeeded('a')
    expect(decides(story, controller)).toEqual([`DispatchRequested ${second?.runId} a`])
  })

  test('[D8] with skip another is skipped, whether there is room for it or not, and names the run in its way', () => {
    const story = new Story()
    const first = story.run('first', { a: [] }, one('skip'))
    first.dispatched('a')
    const second = story.run('second', { a: [], c: ['a'] }, one('skip'))
    const skip = [`TaskSkipped ${second.runId} a ${first.runId}`]
    expect(decides(story)).toEqual(skip)
    expect(decides(story, anew(full))).toEqual(skip)
    expect(second.skipped('a', first.runId)).toEqual({ kind: 'applied' })
    expect(second.skipped('a', first.runId)).toMatchObject({ kind: 'ignored' })
    expect(second.states).toEqual({ a: 'SKIPPED', c: 'SKIPPED' })
    expect(second.task('a')).toMatchObject({ overlap_run_id: first.runId, cause_task_key: null })
    expect(second.task('c')).toMatchObject({ overlap_run_id: null, cause_task_key: 'a' })
    expect(second.row).toMatchObject({ state: 'SUCCEEDED', tasks_skipped: 2 })
  })

  test('[D8] with skip another waits for a run that is being cancelled', () => {
    const story = new Story()
    const first = story.run('first', { a: [] }, one('skip'))
    first.dispatched('a')
    first.cancelled()
    const second = story.run('second', { a: [] }, one('skip'))
    const controller = anew()
    expect(decides(story, controller)).toEqual([])
    first.failed('a')
    expect(decides(story, controller)).toEqual([`DispatchRequested ${second.runId} a`])
  })

  test('[D8] with replace the run that was asked for first is cancelled, and the other begins when its task has ended', () => {
    const story = new Story()
    const first = story.run('first', { a: [] }, one('replace'))
    first.dispatched('a')
    const second = story.run('second', { a: [] }, one('replace'))
    const controller = anew(full)
    const cancels = [`RunCancelRequested ${first.runId} replaced by ${second.runId}`]
    expect(decides(story)).toEqual(cancels)
    expect(decides(story, controller)).toEqual(cancels)
    first.cancelled('asset:a')
    expect(decides(story, controller)).toEqual([])
    first.failed('a')
    expect(decides(story, controller)).toEqual([`DispatchRequested ${second.runId} a`])
  })

  test('[D8] with replace a run that was asked for while the clock was ahead is the older one', () => {
    const story = new Story()
    story.pass(26 * HOUR_MS)
    const ahead = story.run('ahead', { a: [] }, one('replace'))
    ahead.dispatched('a')
    story.pass(-26 * HOUR_MS)
    const second = story.run('second', { a: [] }, one('replace'))
    expect(decides(story)).toEqual([`RunCancelRequested ${ahead.runId} replaced by ${second.runId}`])
  })

  test('[D8] with replace a run that comes to its task late gives way to one that was asked for after it', () => {
    const story = new Story()
    const first = story.run('first', { b: [], a: ['b'] }, one('replace'))
    const second = story.run('second', { a: [] }, one('replace'))
    second.dispatched('a')
    first.done('b')
    expect(decides(story)).toEqual([`RunCancelRequested ${first.runId} replaced by ${second.runId}`])
  })

  test('[D8] only runs of the same partition are kept apart; a range has all of its partitions', () => {
    const story = new Story()
    const range = { partition_key: '1..3', partition_keys: ['1', '2', '3'] }
    story.run('first', { a: [] }, one('skip', range)).dispatched('a')
    const others = ['3', '4'].map((partition_key) => story.run(partition_key, { a: [] }, one('skip', { partition_key })))
    const [third, fourth] = others.map(({ runId }) => runId)
    expect(decides(story)[0]).toContain(`TaskSkipped ${third} a`)
    others[0]?.skipped('a', 'first')
    expect(decides(story)).toEqual([`DispatchRequested ${fourth} a`])
  })
})
