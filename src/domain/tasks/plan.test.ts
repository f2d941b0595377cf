import { describe, expect, test } from 'vitest'
import { RunStory, Story } from '../../testing/histories/story.ts'
import { depSatisfaction } from './dep-satisfaction.table.ts'
import { PlanCreated } from './plan-created.event.ts'
import { TaskFinished } from './task-finished.event.ts'

const chain = { a: [], b: ['a'], c: ['b'] }
const diamond = { top: [], left: ['top'], right: ['top'], bottom: ['left', 'right'] }

describe('a plan', () => {
  test('[I7] makes roots ready, and every other task when the last of its upstreams has succeeded', () => {
    const run = new Story().run('report', diamond)
    expect(run.states).toEqual({ top: 'READY', left: 'BLOCKED', right: 'BLOCKED', bottom: 'BLOCKED' })
    run.done('top', 'left')
    expect(run.states).toMatchObject({ right: 'READY', bottom: 'BLOCKED' })
    run.done('right')
    expect(run.states).toMatchObject({ bottom: 'READY' })
  })

  test('[T5][I7] a dispatch that comes too early waits until its task is ready', () => {
    const run = new Story().run('report', chain)
    expect(run.dispatched('b')).toMatchObject({ kind: 'parked' })
    expect(run.states).toMatchObject({ b: 'BLOCKED' })
    run.done('a')
    expect(run.states).toMatchObject({ b: 'DISPATCHED' })
  })

  test('in parts starts when the last of them is here, whichever that is', () => {
    const story = new Story()
    const run = new RunStory(story, 'report')
    const part = (number: number, task_key: string) => ({
      run_id: run.runId,
      plan_id: 'p',
      part: number,
      parts: 3,
      tasks: [{ task_key }],
    })
    run.requested()
    story.tell(PlanCreated, part(2, 'z'))
    story.tell(PlanCreated, part(0, 'x'))
    expect(story.tell(PlanCreated, part(0, 'x'))).toEqual({ kind: 'duplicate' })
    expect(run.states).toEqual({ x: 'PLANNED', z: 'PLANNED' })
    story.tell(PlanCreated, part(1, 'y'))
    expect(run.states).toEqual({ x: 'READY', y: 'READY', z: 'READY' })
  })

  test('may be empty: then there is nothing to do, and the run has succeeded', () => {
    expect(new Story().run('report', {}).row).toMatchObject({ state: 'SUCCEEDED', tasks_total: 0 })
  })

  test.each([
    ['a cycle', { a: ['b'], b: ['a'], c: [] }, 'the plan has a cycle through a, b'],
    ['an upstream it does not have', { a: ['nobody'], b: [] }, 'a depends on nobody, which is not in the plan'],
  ])('[T10] with %s ends the run at once and says why', (_, plan, error) => {
    const run = new Story().run('report', plan)
    expect(run.row).toMatchObject({ state: 'FAILED', error })
    expect(new Set(Object.values(run.states))).toEqual(new Set(['SKIPPED']))
  })

  test('may say what a task waits for in several parts, before or after the task itself', () => {
    const edges = [{ task_key: 'c', depends_on: ['a', 'b'] }]
    const pieces = [
      { tasks: [{ task_key: 'a' }], edges },
      { tasks: [{ task_key: 'c', depends_on: ['a'] }] },
      { tasks: [{ task_key: 'b' }] },
    ]
    for (const order of [
      [0, 1, 2],
      [2, 1, 0],
    ]) {
      const story = new Story()
      const run = new RunStory(story, 'report')
      run.requested()
      for (const part of order)
        story.tell(PlanCreated, { run_id: run.runId, plan_id: 'p', parts: 3, part, ...(pieces[part] as { tasks: [] }) })
      expect(run.states).toEqual({ a: 'READY', b: 'READY', c: 'BLOCKED' })
      expect(run.task('c')).toMatchObject({ deps_total: 2 })
      run.done('a', 'b')
      expect(run.states).toMatchObject({ c: 'READY' })
    }
  })

  test('[T10] that says what a task waits for which it does not have ends the run and says which', () => {
    const story = new Story()
    const run = new RunStory(story, 'report')
    run.requested()
    const edges = [{ task_key: 'b', depends_on: ['a'] }]
    story.tell(PlanCreated, { run_id: run.runId, plan_id: 'p', part: 0, parts: 1, tasks: [{ task_key: 'a' }], edges })
    expect(run.row).toMatchObject({ state: 'FAILED', error: 'b depends on a, and b is not in the plan' })
  })

  test('[T10] that names a task in two parts ends the run when all parts are here, and says which task', () => {
    const story = new Story()
    const run = new RunStory(story, 'report')
    run.requested()
    const plan = { run_id: run.runId, plan_id: 'p', parts: 2 }
    story.tell(PlanCreated, { ...plan, part: 0, tasks: [{ task_key: 'a' }] })
    story.tell(PlanCreated, { ...plan, part: 1, tasks: [{ task_key: 'a' }, { task_key: 'b' }] })
    expect(run.row).toMatchObject({ state: 'FAILED', error: 'the plan names the task a twice' })
  })
})

describe('a failure', () => {
  test('[T8] skips everything below it, and the edges say why', () => {
    const story = new Story()
    const run = story.run('report', chain)
    run.dispatched('a')
    run.gaveUp('a')
    expect(run.states).toEqual({ a: 'FAILED', b: 'SKIPPED', c: 'SKIPPED' })
    expect(story.row(depSatisfaction, run.runId, 'a', 'b')).toMatchObject({ satisfied: false, resolution: 'FAILED' })
    expect(story.row(depSatisfaction, run.runId, 'b', 'c')).toMatchObject({ satisfied: false, resolution: 'SKIPPED' })
    expect(run.task('c')).toMatchObject({ cause_task_key: 'a', cause_event_id: run.task('a')?.row_version })
    expect(run.row).toMatchObject({ state: 'FAILED', tasks_failed: 1, tasks_skipped: 2 })
  })

  test('[T8] leaves alone what does not depend on it; the run goes on and fails at the end', () => {
    const run = new Story().run('report', { a: [], below: ['a'], other: [] })
    run.dispatched('a')
    run.gaveUp('a')
    expect(run.states).toEqual({ a: 'FAILED', below: 'SKIPPED', other: 'READY' })
    expect(run.row?.state).toBe('RUNNING')
    run.done('other')
    expect(run.row?.state).toBe('FAILED')
  })

  test('[T8] of two failures above a task the one that was written first is its cause, whichever is heard first', () => {
    const story = new Story()
    const run = story.run('report', { left: [], right: [], bottom: ['left', 'right'] })
    run.dispatched('left')
    run.dispatched('right')
    const first = story.write(TaskFinished, { ...run.attempt('left'), outcome: 'FAILED', completed_at: story.time() })
    run.gaveUp('right')
    expect(run.task('bottom')).toMatchObject({ state: 'SKIPPED', cause_task_key: 'right' })
    story.hear(first)
    expect(run.task('bottom')).toMatchObject({ state: 'SKIPPED', cause_task_key: 'left' })
  })
})

test('[T8] below an attempt that was cancelled everything is cancelled, and the edges say so', () => {
  const story = new Story()
  const run = story.run('report', chain)
  run.dispatched('a')
  story.tell(TaskFinished, { ...run.attempt('a'), outcome: 'CANCELLED', completed_at: story.time() })
  expect(run.states).toEqual({ a: 'CANCELLED', b: 'CANCELLED', c: 'CANCELLED' })
  expect(story.row(depSatisfaction, run.runId, 'b', 'c')).toMatchObject({ satisfied: false, resolution: 'CANCELLED' })
})
