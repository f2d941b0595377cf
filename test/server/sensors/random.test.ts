import fc from 'fast-check'
import { expect, test } from 'vitest'
import { AutomationPaused } from '../../../src/domain/automation/automation-paused.event.ts'
import { AutomationResumed } from '../../../src/domain/automation/automation-resumed.event.ts'
import { SensorCursorReset } from '../../../src/domain/sensors/sensor-cursor-reset.event.ts'
import { SensorMessageReplayed } from '../../../src/domain/sensors/sensor-message-replayed.event.ts'
import { SensorPaused } from '../../../src/domain/sensors/sensor-paused.event.ts'
import { SensorResumed } from '../../../src/domain/sensors/sensor-resumed.event.ts'
import { MINUTE_MS, SECOND_MS } from '../../../src/lib/time.ts'
import { parkedEvents } from '../../../src/model/system-tables.ts'
import { effort } from '../../../src/testing/histories/histories.ts'
import { every, hook, oneRun, Sensing } from './sensing.ts'

const MAX_TRIES = 3
const sensors = [
  { name: 'inbox', config: hook, max_tries: MAX_TRIES },
  { name: 'files', config: every(20 * SECOND_MS) },
]

type Step =
  | {
      readonly kind: 'deliver'
      readonly message: number
      readonly body: number
      readonly fails: boolean
      readonly times: number
    }
  | { readonly kind: 'kill' | 'close' | 'kill while it evaluates' | 'pause' | 'resume' | 'pause all' | 'resume all' }
  | { readonly kind: 'reset' | 'replay' | 'advance'; readonly n: number }

const times = fc.integer({ min: 1, max: 4 })
const small = fc.nat({ max: 3 })
const message = fc.nat({ max: 2 })
const kinds = ['kill', 'close', 'kill while it evaluates', 'pause', 'resume', 'pause all', 'resume all'] as const
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof<fc.WeightedArbitrary<Step>[]>(
    {
      weight: 8,
      arbitrary: fc.record({
        kind: fc.constant('deliver' as const),
        ...{ message, times },
        body: fc.nat({ max: 1 }),
        fails: fc.boolean(),
      }),
    },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('advance' as const), n: small }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('reset' as const, 'replay' as const), n: message }) },
    { weight: 5, arbitrary: fc.record({ kind: fc.constantFrom(...kinds) }) },
  ),
  { maxLength: 30, size: 'max' },
)

/** What should be known of a message. */
interface Expected {
  tries: number
  body?: number
  eval_id?: string
}

/** The rules in their simplest form: no fold, no clock, no process. */
class Oracle {
  readonly messages = new Map<number, Expected>()
  readonly conflicts = new Set<string>()
  isPaused = false
  isAllPaused = false

  /** What each of the deliveries of a message that come at once is answered. */
  deliver({ message: id, body, fails }: Extract<Step, { kind: 'deliver' }>): object {
    if (this.isPaused) return { kind: 'standstill', code: 'paused' }
    if (this.isAllPaused) return { kind: 'standstill', code: 'automation_paused' }
    const known = this.messages.get(id) ?? { tries: 0 }
    this.messages.set(id, known)
    if (known.body !== undefined) {
      const conflict = known.body !== body
      if (conflict) this.conflicts.add(`${id} ${body}`)
      return { kind: 'accepted', repeated: true, conflict, ...(known.eval_id !== undefined && { eval_id: known.eval_id }) }
    }
    if (known.tries >= MAX_TRIES) return { kind: 'dead' }
    if (!fails) {
      known.body = body
      return { kind: 'accepted', repeated: false, conflict: false }
    }
    known.tries += 1
    return known.tries >= MAX_TRIES ? { kind: 'dead' } : { kind: 'failed', try: known.tries, max_tries: MAX_TRIES }
  }

  replay(id: number): void {
    const known = this.messages.get(id)
    if (known !== undefined && known.tries >= MAX_TRIES && known.body === undefined) known.tries = 0
  }
}

class Played {
  readonly oracle = new Oracle()
  readonly sensing: Sensing
  #requests = 0
  /** Whether the code of the webhook fails at present. */
  fails = false

  constructor(sensing: Sensing) {
    this.sensing = sensing
    sensing.evaluator.script = (request) => {
      if (request.of === 'poll') {
        const next = Number(request.cursor ?? 0) + 1
        // Some find nothing, some fail, and some take longer than the time between two steps.
        const report =
          next % 5 === 0 && sensing.evaluator.asked.length % 3 === 0
            ? ({ outcome: 'error', error: 'out of order' } as const)
            : sensing.evaluator.asked.length % 4 === 0
              ? ({ outcome: 'requests', runs: [] } as const)
              : ({ ...oneRun(), cursor: String(next) } as const)
        return { ms: (next % 3) * 15 * SECOND_MS, report }
      }
      return { ms: SECOND_MS, report: this.fails ? { outcome: 'error', error: 'refused' } : oneRun() }
    }
  }

  async take(step: Step): Promise<void> {
    const { sensing, oracle } = this
    const request = { request_id: `r${++this.#requests}`, changed_by: 'ana' }
    const [inbox, files] = [{ sensor_id: sensing.idOf('inbox') }, { sensor_id: sensing.idOf('files') }]
    switch (step.kind) {
      case 'deliver':
        return await this.#deliver(step)
      case 'advance':
        return await sensing.clock.advance([1, SECOND_MS, 25 * SECOND_MS, 3 * MINUTE_MS][step.n] ?? 1)
      case 'close':
        await sensing.soon(sensing.server.close())
        return await sensing.start()
      case 'kill while it evaluates':
        void Promise.allSettled([sensing.deliver('m0', 0)])
        await sensing.clock.advance(SECOND_MS / 2)
        sensing.kill()
        return await sensing.start()
      case 'kill':
        sensing.kill()
        await sensing.clock.advance(MINUTE_MS)
        return await sensing.start()
      case 'pause':
        oracle.isPaused = true
        return await sensing.write(SensorPaused, { ...inbox, ...request })
      case 'resume':
        oracle.isPaused = false
        return await sensing.write(SensorResumed, { ...inbox, ...request })
      case 'pause all':
        oracle.isAllPaused = true
        return await sensing.write(AutomationPaused, request)
      case 'resume all':
        oracle.isAllPaused = false
        return await sensing.write(AutomationResumed, request)
      case 'reset':
        return await sensing.write(SensorCursorReset, { ...files, ...request, cursor: String(1_000 * this.#requests) })
      case 'replay':
        oracle.replay(step.n)
        return await sensing.write(SensorMessageReplayed, {
          ...inbox,
          ...{ message_id: `m${step.n}`, request_id: request.request_id, requested_by: 'ana' },
        })
    }
  }

  async #deliver(step: Extract<Step, { kind: 'deliver' }>): Promise<void> {
    const { sensing, oracle } = this
    this.fails = step.fails
    const expected = oracle.deliver(step)
    const all = Array.from({ length: step.times }, () => sensing.deliver(`m${step.message}`, step.body))
    for (const answer of await sensing.soon(Promise.all(all))) {
      expect(answer).toMatchObject(expected)
      const known = oracle.messages.get(step.message)
      if (answer.kind === 'accepted' && known !== undefined) known.eval_id = answer.eval_id
    }
  }

  /** Everything on record agrees with the oracle, and with itself. */
  check(): void {
    const { sensing, oracle } = this
    const accepted = sensing.evals().filter((row) => row.accepted)
    const messages = [...oracle.messages].filter(([, { body }]) => body !== undefined)
    expect(
      accepted.flatMap(({ message_id }) => message_id ?? []).sort(),
      'one accepted evaluation for each message that was answered so',
    ).toEqual(messages.map(([id]) => `m${id}`).sort())
    expect(sensing.runs(), 'a run for each evaluation that asked for one').toHaveLength(
      accepted.filter(({ status }) => status === 'triggered').length,
    )
    const polls = accepted.filter(({ trigger_source }) => trigger_source === 'poll')
    const versions = polls.map(({ state_version }) => state_version)
    expect(new Set(versions).size, 'one poll counts for each version').toBe(versions.length)
    const from = polls.map(({ cursor_before }) => cursor_before)
    expect(new Set(from).size, 'no cursor is read twice').toBe(from.length)
    const dead = [...oracle.messages.values()].filter(({ tries, body }) => tries >= MAX_TRIES && body === undefined)
    expect(sensing.state('inbox')?.dead_letters ?? 0).toBe(dead.length)
    expect([...sensing.server.orchestrator.readable.state.hot(parkedEvents).all()]).toEqual([])
    expect(sensing.troubles).toEqual([])
  }
}

test('[A20][A21][A27][A28][A33] whatever is delivered and polled, and however often the process ends: messages are answered by the rules, and each accepted evaluation has its run', async () => {
  const property = fc.asyncProperty(steps, async (taken) => {
    const played = new Played(await Sensing.open(sensors))
    for (const step of taken) await played.take(step)
    await played.sensing.clock.advance(MINUTE_MS)
    played.check()
  })
  await fc.assert(property, { numRuns: Math.ceil(effort.numRuns / 8) })
})
