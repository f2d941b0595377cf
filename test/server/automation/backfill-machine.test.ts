import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { WireBackfill } from '../../../src/api/automation/backfill-contract.ts'
import { SECOND_MS } from '../../../src/lib/time.ts'
import { effort } from '../../../src/testing/histories/histories.ts'
import { Led } from '../led.ts'
import { failure } from '../world.ts'

/** Where ADR-025 lets each state lead. */
const MAY: Readonly<Record<string, readonly string[]>> = {
  PENDING: ['RUNNING', 'CANCELLED'],
  RUNNING: ['PAUSED', 'SUCCEEDED', 'FAILED', 'CANCELLED'],
  PAUSED: ['RUNNING', 'CANCELLED'],
  SUCCEEDED: [],
  FAILED: [],
  CANCELLED: [],
}

interface Step {
  readonly what: 'pause' | 'resume' | 'cancel' | 'again' | 'wait' | 'change'
  /** What a request expects the version to be, beside what it is; null to expect none. */
  readonly off: number | null
  readonly ms: number
}

const steps = fc.array(
  fc.record({
    what: fc.constantFrom<Step['what']>('pause', 'resume', 'pause', 'resume', 'cancel', 'again', 'wait', 'wait', 'change'),
    off: fc.constantFrom(null, null, 0, -1, 1),
    ms: fc.constantFrom(0, 10, 500, 3 * SECOND_MS),
  }),
  { maxLength: 25, size: 'max' },
)
const daily = { type: 'daily', start: '2024-01-01', timezone: 'UTC' } as const
const project = { assets: [{ asset_key: 'days', kind: 'asset' as const, partitions: daily }] }

type Answer = Awaited<ReturnType<Led['post']>>

/** One backfill, what was asked of it, and what it must look like because of that. */
class Machine {
  readonly #led: Led
  readonly #id: string
  #last: (() => Promise<Answer>) | undefined
  #answer: Answer | undefined
  #requests = 0
  #seen!: WireBackfill

  private constructor(led: Led, id: string) {
    this.#led = led
    this.#id = id
  }

  static async open(failing: boolean): Promise<Machine> {
    const broken = { ms: 900, result: failure({ retryable: false }) }
    const led = await Led.open(project, { automation: true }, ({ partition }) =>
      failing && partition?.key === '2024-01-03' ? broken : { ms: 900 },
    )
    led.server.orchestrator.projectKnown()
    const partitions = { type: 'range', start: '2024-01-01', end: '2024-01-08' }
    const { body } = await led.post('/backfills', { select: ['days'], partitions, chunk_size: 2, max_concurrent_runs: 1 })
    const machine = new Machine(led, body.backfill_id)
    machine.#seen = await machine.#shown()
    return machine
  }

  async #shown(): Promise<WireBackfill> {
    return (await this.#led.get(`/backfills/${this.#id}`)).body.backfill
  }

  /** The state has moved only where it may, one version for each move, and nothing that was counted is uncounted. */
  async #look(): Promise<WireBackfill> {
    const [before, now] = [this.#seen, await this.#shown()]
    const states = [before, now].map(({ state }) => state.replace('_WITH_FAILURES', ''))
    const moves = now.state_version - before.state_version
    const [from = '', to = ''] = states
    // Of several moves only the first and the last state are seen: they alternate until the end.
    if (moves === 0) expect(to).toBe(from)
    else if (moves === 1) expect(MAY[from]).toContain(to)
    else expect(Object.values(MAY).flat()).toContain(to)
    expect(moves).toBeGreaterThanOrEqual(0)
    for (const count of ['planned_chunks', 'succeeded_chunks', 'failed_chunks', 'succeeded_partitions'] as const)
      expect(now[count]).toBeGreaterThanOrEqual(before[count])
    if (before.finished_at !== null) expect(now).toEqual(before)
    this.#seen = now
    return now
  }

  async take({ what, off, ms }: Step): Promise<void> {
    if (what === 'wait') {
      await this.#led.clock.advance(ms)
      await this.#look()
    } else if (what === 'again') await this.#repeat()
    else await this.#ask(what, off)
  }

  async #ask(what: 'pause' | 'resume' | 'cancel' | 'change', off: number | null): Promise<void> {
    const before = await this.#look()
    const expected = off === null ? '' : `?expected_state_version=${before.state_version + off}`
    const request_id = `r${this.#requests++}`
    const send = () =>
      what === 'change'
        ? this.#led.ask('PATCH', `/backfills/${this.#id}${expected}`, { max_concurrent_runs: 2, request_id })
        : this.#led.post(`/backfills/${this.#id}/${what}${expected}`, { request_id })
    const answer = await send()
    const now = await this.#look()
    const isOver = before.finished_at !== null
    const isCancelled = before.cancel_requested_at !== null
    if (what === 'cancel' && isCancelled) expect(answer.body).toMatchObject({ message: 'cancellation requested' })
    else if (off !== null && off !== 0) {
      expect(answer).toMatchObject({ status: 409, body: { code: 'state_changed', actual: before.state_version } })
      expect(now.state_version, 'a conflict changes nothing').toBe(before.state_version)
    } else if (isOver || isCancelled)
      expect(answer).toMatchObject({ status: 409, body: { code: 'backfill_over', current: expect.any(String) } })
    else if (what === 'pause') expect(now.state).toMatch(/^PAUSED/)
    else if (what === 'resume') expect(now.state).not.toMatch(/^PAUSED/)
    else if (what === 'cancel') expect(now.cancel_requested_at).not.toBeNull()
    if (answer.status === 202) [this.#last, this.#answer] = [send, answer]
  }

  /** The last request that was accepted, sent again, is the same request: it changes nothing. */
  async #repeat(): Promise<void> {
    if (this.#last === undefined) return
    const before = await this.#look()
    const { status, body } = await this.#last()
    const now = await this.#look()
    expect([now.state, now.state_version]).toEqual([before.state, before.state_version])
    // After a change that others made meanwhile, an expected version is out of date even so.
    if (status === 202) expect(body.message).toBe(this.#answer?.body.message)
  }

  /** In the end everything is made, or was cancelled, each partition once. */
  async end(): Promise<void> {
    await this.#led.post(`/backfills/${this.#id}/resume`, {})
    await this.#led.clock.advance(60 * SECOND_MS)
    const now = await this.#look()
    const made = this.#led.workers.started.map(({ partition }) => partition?.key)
    expect(new Set(made).size, 'each partition once').toBe(made.length)
    expect(now.finished_at).not.toBeNull()
    expect(now.active_chunks).toEqual([])
    expect(made.length).toBe(2 * now.planned_chunks)
    if (now.cancel_requested_at === null) expect(now.planned_chunks).toBe(now.total_chunks)
    else expect(now.state).toBe('CANCELLED')
  }
}

test('[A80][A85][I14] whatever is asked of a backfill and in whatever order, it moves only as ADR-025 says, one version at a time', async () => {
  const property = fc.asyncProperty(steps, fc.boolean(), async (asked, failing) => {
    const machine = await Machine.open(failing)
    for (const step of asked) await machine.take(step)
    await machine.end()
  })
  await fc.assert(property, { numRuns: Math.ceil(effort.numRuns / 8) })
})
