import { describe, expect, test } from 'vitest'
import type { SensorDefinitionInput } from '../../contract/sensor.ts'
import { MINUTE_MS, toIso } from '../../lib/time.ts'
import { newEvent } from '../../model/event.ts'
import { SensorBench } from '../../testing/sensor-bench.ts'
import { AutomationPaused } from '../automation/automation-paused.event.ts'
import { automationState } from '../automation/automation-state.table.ts'
import { runKeyIndex } from '../runs/run-key-index.table.ts'
import type { EvaluatedSource, EvaluationResult } from '../sensors/evaluation/evaluation-events.ts'
import { runsOfEvaluation } from '../sensors/evaluation/runs-of-evaluation.ts'
import { SensorCursorReset } from '../sensors/sensor-cursor-reset.event.ts'
import { type SensorEvalRow, sensorEvals } from '../sensors/sensor-evals.table.ts'
import { sensorMessageConflicts } from '../sensors/sensor-message-conflicts.table.ts'
import { SensorMessageReplayed } from '../sensors/sensor-message-replayed.event.ts'
import { SensorPaused } from '../sensors/sensor-paused.event.ts'
import { SensorRemoved } from '../sensors/sensor-removed.event.ts'
import { SensorsPolled } from '../sensors/sensors-polled.event.ts'
import type { WhyAnswer } from './reasons.ts'
import { whyMessage, whySensor } from './why-sensor.ts'
import { whyInWords } from './words.ts'

const hook = { config: { type: 'webhook', path: 'orders', verify: 'none' }, max_tries: 2 } as const
const poll = { config: { type: 'poll', every_ms: 60_000 } } as const
const asks: EvaluationResult = { runs: [{ asset_selection: ['orders'] }] }
const nothing: EvaluationResult = { runs: [] }
const failed: EvaluationResult = { error: 'no such column\nat line 3' }
const message = (id: string, attempt = 1, body_hash = 'a'): EvaluatedSource => ({
  source: 'push',
  message_id: id,
  try: attempt,
  body_hash,
  body_size: 4,
})
const polled = (state_version: number): EvaluatedSource => ({ source: 'poll', state_version, cursor: null })

class History extends SensorBench {
  #begun = 0
  polledAt: number | undefined
  missingSecrets: string[] = []

  constructor(definition: Omit<SensorDefinitionInput, 'name'>) {
    super()
    this.define(definition)
  }

  evaluate(source: EvaluatedSource, result: EvaluationResult): void {
    this.now += MINUTE_MS
    this.write(this.eventsOf({ source, begun: `${++this.#begun}`, result }))
  }

  /** What the server would answer from this history. */
  ask(messageId?: string): WhyAnswer {
    const byKey = new Map(this.rows(runKeyIndex).map((row) => [row.run_key, row]))
    const evaluations = this.rows(sensorEvals)
      .filter((row) => messageId === undefined || row.message_id === messageId)
      .sort((a, b) => b.evaluated_at - a.evaluated_at)
    const { definition, state, now, polledAt, missingSecrets } = this
    const everything = this.bench.state.hot(automationState).get('all')
    const runsOf = (row: Readonly<SensorEvalRow>) => runsOfEvaluation(row, (key) => byKey.get(key))
    const known = { definition, state, everything, now, polledAt, missingSecrets, evaluations, runsOf }
    if (messageId === undefined) return whySensor(known)
    const conflicts = this.rows(sensorMessageConflicts).length
    return whyMessage(known, { message_id: messageId, row: this.message(messageId), conflicts })
  }

  say(messageId?: string): string[] {
    return whyInWords(this.ask(messageId), 'UTC').map(({ text }) =>
      text.replace(/run_[a-z2-7]{26}/g, 'run_…').replace(/2025-01-15 10:\d\d:\d\d(\.\d+)?|2025-01-15 10:\d\d/g, 'T'),
    )
  }
}

const who = { sensor_id: 'inbox', request_id: 'r', changed_by: 'ana', reason: 'maintenance' }

describe('why a sensor asked for a run or did not', () => {
  test('[A62] nothing has come, or it was never polled', () => {
    expect(new History(hook).say()).toEqual(['inbox did not run: no message has been evaluated since it was declared at T'])
    const said = new History(poll).say()
    expect(said[0]).toMatch(/^inbox did not run: it has not been polled since it was declared at T/)
    expect(said[1]).toMatch(/^its next poll is due now$/)
    const quiet = new History(poll)
    quiet.polledAt = quiet.now
    expect(quiet.say(), 'a poll that found nothing is not on record yet').toEqual([
      'inbox was evaluated: at T it was polled and found nothing new',
      'next poll: T',
    ])
  })

  test('[A52] its senders are refused, because its secret is not set', () => {
    const history = new History(hook)
    history.missingSecrets = ['SHOP_SECRET']
    const refused = 'its secret SHOP_SECRET is not set in the environment of the server, so its messages are refused'
    expect(history.say()[0]).toBe(`inbox did not run: ${refused}`)
    expect(history.say('m_1')[1]).toBe(refused)
  })

  test('[A62] a message asked for runs, or for nothing', () => {
    const history = new History(hook)
    history.evaluate(message('m_1'), nothing)
    expect(history.say()).toEqual(['inbox was evaluated and requested nothing at T, for message m_1'])
    history.evaluate(message('m_2'), asks)
    expect(history.say()).toEqual(['inbox ran: at T message m_2 requested run_…', 'at T message m_1 requested nothing'])
  })

  test('[A62] its key was used before, for the same or for something else: there is no new run', () => {
    const history = new History(hook)
    const keyed = (labels: Record<string, string> = {}) => ({ runs: [{ asset_selection: ['orders'], key: 'a b', labels }] })
    history.evaluate(message('m_1'), keyed())
    expect(history.say('m_1')).toEqual(['inbox ran for message m_1: it was accepted at T and requested run_…'])
    history.evaluate(message('m_2'), keyed())
    expect(history.say()[0]).toBe('inbox did not run: at T message m_2 made no new run: key a b was used by run_… at T')
    for (const id of ['m_3', 'm_4']) {
      history.evaluate(message(id), { runs: [...keyed({ team: 'shop' }).runs, { asset_selection: ['orders'] }] })
      expect(history.say(id), 'also when the same conflict is on record already').toEqual([
        `inbox ran for message ${id}: it was accepted at T and requested run_…; no new run where key a b was used for another request by run_… at T (servo conflicts)`,
      ])
    }
    history.evaluate(message('m_5'), {
      runs: [...keyed({ n: '1' }).runs, ...keyed({ n: '2' }).runs].map((run) => ({ ...run, key: 'c' })),
    })
    expect(history.say('m_5')[0], 'one evaluation may be in conflict with itself').toMatch(
      /requested run_…; no new run where key c was used for another request by run_…/,
    )
  })

  test('[A62] it only added or removed keys, or moved its cursor', () => {
    const history = new History(poll)
    const partition_keys_added = [{ set_name: 'customers', keys: ['acme'] }]
    const partition_keys_removed = [{ set_name: 'shops', keys: ['a', 'b'] }]
    history.evaluate(polled(0), { runs: [], cursor: '"1"', partition_keys_added, partition_keys_removed })
    expect(history.say()[0]).toBe(
      'inbox was evaluated: at T a poll requested no run, but added 1 key to customers, removed 2 keys from shops and moved its cursor',
    )
    history.evaluate({ source: 'poll', state_version: 1, cursor: '"1"' }, { runs: [], cursor: '"2"' })
    expect(history.say()[0]).toBe('inbox was evaluated: at T a poll requested no run, but moved its cursor')
    history.evaluate({ source: 'poll', state_version: 2, cursor: '"2"' }, { ...asks, cursor: '"3"' })
    expect(history.say()[0]).toBe('inbox ran: at T a poll requested run_… and moved its cursor')
    const pushed = new History(hook)
    pushed.evaluate(message('m_1'), { ...asks, partition_keys_added })
    expect(pushed.say('m_1')).toEqual([
      'inbox ran for message m_1: it was accepted at T, requested run_… and added 1 key to customers',
    ])
  })

  test('[A62] it fails: what went wrong, and until when it rests', () => {
    const history = new History(poll)
    history.evaluate(polled(0), failed)
    expect(history.say()).toEqual([
      'inbox did not run: its last evaluation failed and it is not polled before T: no such column',
      'at T a poll failed: no such column',
      'next poll: T',
    ])
  })

  test('[A62] it found nothing new for a while, or another poll was faster', () => {
    const history = new History(poll)
    const [first, last] = [toIso(history.now), toIso(history.now + 5 * MINUTE_MS)]
    history.write([
      newEvent(SensorsPolled, {
        record_id: 'r',
        polled: [{ sensor_id: 'inbox', state_version: 0, poll_count: 6, first, last }],
      }),
    ])
    expect(history.say()[0]).toBe('inbox was evaluated: from T to T it was polled 6 times and found nothing new')
    history.evaluate(polled(0), { runs: [], cursor: '"1"' })
    history.evaluate(polled(0), asks)
    expect(history.say()[0]).toMatch(/^inbox did not run: at T a poll did not count: another poll from the same cursor/)
  })

  test.each([
    ['paused', newEvent(SensorPaused, who), 'paused by ana at T: maintenance', 'servo sensors resume inbox'],
    [
      'all automation paused',
      newEvent(AutomationPaused, { request_id: 'a', changed_by: 'bo' }),
      'all automation was paused by bo at T',
      'servo automation resume',
    ],
    [
      'removed',
      newEvent(SensorRemoved, { sensor_id: 'inbox', request_id: 'r', removed_by: 'ana' }),
      'it was removed at T',
      null,
    ],
  ])('[A62] it is %s', (_, event, words, ends) => {
    const history = new History(hook)
    history.evaluate(message('m_1'), asks)
    history.write([event])
    const resume = ends === null ? [] : [`resume it: ${ends}`]
    expect(history.say()).toEqual([`inbox did not run: ${words}`, 'at T message m_1 requested run_…', ...resume])
    expect(history.ask().verdict).toBe('did_not_run')
  })

  test('[A62] it is disabled', () => {
    expect(new History({ ...hook, enabled: false }).say()[0]).toBe('inbox did not run: it has been disabled since T')
  })

  test('[A62] a user reset its cursor', () => {
    const history = new History(poll)
    history.write([
      newEvent(SensorCursorReset, { sensor_id: 'inbox', request_id: 'r', changed_by: 'ana', cursor: null, reason: 'again' }),
    ])
    expect(history.say()).toContain('ana reset its cursor at T: again')
  })
})

describe('what became of a message', () => {
  test('[A62] it is not on record', () => {
    expect(new History(hook).say('m_9')).toEqual([
      'inbox did not run for message m_9: it was never evaluated: it was not delivered, was refused, or arrived while inbox was paused',
    ])
  })

  test('[A62] it failed, was a dead letter, was replayed, and was accepted', () => {
    const history = new History(hook)
    history.evaluate(message('m_1'), failed)
    expect(history.say('m_1')).toEqual([
      'inbox did not run for message m_1: its first try failed; it is tried again when it is delivered again: no such column',
    ])
    history.evaluate(message('m_1', 2), { error: 'no such column.\n    at on (assets/inbox.ts:12:5)' })
    expect(history.say()).toContain('at T message m_1 failed at try 2: no such column. (assets/inbox.ts:12)')
    expect(history.say('m_1')[0]).toBe(
      'inbox did not run for message m_1: it has been a dead letter since T, after 2 tries: no such column. Replay it: servo sensors replay inbox m_1',
    )
    expect(history.say()).toContain('1 message is a dead letter: servo sensors dead-letters inbox')
    history.write([
      newEvent(SensorMessageReplayed, { sensor_id: 'inbox', message_id: 'm_1', request_id: 'r', requested_by: 'ana' }),
    ])
    expect(history.say('m_1')[0]).toContain('when it is delivered again (ana replayed it at T): no such column')
    history.evaluate(message('m_1', 3), asks)
    expect(history.say('m_1')).toEqual([
      'inbox ran for message m_1: it was accepted at T at try 3 and requested run_…',
      'at T message m_1 failed at try 2: no such column. (assets/inbox.ts:12)',
      'at T message m_1 failed at try 1: no such column',
    ])
  })

  test('[A62] another body came under its id', () => {
    const history = new History(hook)
    history.evaluate(message('m_1'), nothing)
    history.evaluate(message('m_1', 1, 'b'), asks)
    expect(history.say('m_1')).toEqual([
      'inbox was evaluated for message m_1: it was accepted at T and requested nothing',
      'another body came with the same id and did not count: servo conflicts',
      'at T message m_1 did not count: it had been accepted before',
    ])
  })
})
