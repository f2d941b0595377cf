import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { DispatchEnvelope } from '../../src/contract/dispatch.ts'
import { isRunOver } from '../../src/domain/runs/runs.table.ts'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/lib/time.ts'
import { effort } from '../../src/testing/histories/histories.ts'
import { type Answer, Remote } from './remote.ts'
import { failure, World } from './world.ts'

type Step =
  | { readonly kind: 'ask' | 'crash' | 'advance' | 'cancel' | 'again'; readonly n: number }
  | { readonly kind: 'started' | 'heartbeat' | 'completed'; readonly n: number; readonly worker: number }

const pauses = [1, 10 * SECOND_MS, 45 * SECOND_MS, 100 * SECOND_MS, 11 * MINUTE_MS]
const n = fc.nat({ max: 99 })
const often = (weight: number, kind: Step['kind']) => ({
  weight,
  arbitrary: fc.record({ kind: fc.constant(kind), n, worker: fc.nat({ max: 2 }) }) as fc.Arbitrary<Step>,
})
const steps = fc.array(
  fc.oneof(
    often(5, 'ask'),
    often(5, 'started'),
    often(3, 'heartbeat'),
    often(4, 'completed'),
    often(3, 'again'),
    often(5, 'advance'),
    often(2, 'crash'),
    { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom<Step['kind']>('advance', 'cancel'), n }) as fc.Arbitrary<Step> },
  ),
  { maxLength: 40, size: 'max' },
)

const assets = ['a', 'b', 'c']

interface Told {
  readonly work: DispatchEnvelope
  readonly result: { outcome: string; materialization_id?: string; error?: { message: string } }
  readonly answer: Answer
  /** Whether anything on record of the run changed while it was told. */
  readonly changed: boolean
}

/** Workers that do anything at any time, with whatever they ever got hold of. */
class Chaos {
  readonly hands: DispatchEnvelope[] = []
  readonly told: Told[] = []
  #last: (() => Promise<unknown>)[] = []
  world!: World
  remote!: Remote
  run = ''

  static async begin(): Promise<Chaos> {
    const chaos = new Chaos()
    const post = async (_: string, envelope: DispatchEnvelope) => void chaos.hands.push(envelope)
    chaos.world = await World.open({ options: { remote: { post }, publishDelayMs: 100 * HOUR_MS } })
    chaos.remote = new Remote(chaos.world)
    chaos.#route()
    const retry = { max_attempts: 3, initial_ms: 1_000 }
    await chaos.world.define({
      a: { queue: 'gpu', retry },
      b: { queue: 'told', retry, timeout_sec: 100 },
      c: { queue: 'gpu', retry, deps: [{ asset_key: 'a' }] },
    })
    chaos.run = await chaos.world.request('r1')
    return chaos
  }

  #route(): void {
    this.remote.pushTo({ told: { push: 'https://queue.example' } })
  }

  async take(step: Step): Promise<void> {
    const { world } = this
    if (step.kind === 'advance') return await world.clock.advance(pauses[step.n % pauses.length] as number)
    if (step.kind === 'cancel') return await world.cancel(this.run)
    if (step.kind === 'crash') {
      await world.crash(pauses[step.n % pauses.length] as number)
      return this.#route()
    }
    if (step.kind === 'again') {
      await this.#last[step.n % Math.max(1, this.#last.length)]?.()
      return
    }
    const request = this.#request(step)
    if (request === undefined) return
    this.#last = [request, ...this.#last].slice(0, 5)
    await request()
  }

  #request(step: Step): (() => Promise<unknown>) | undefined {
    const { remote } = this
    if (step.kind === 'ask') return async () => this.hands.push(...(await remote.ask('w', { capacity: 1 + (step.n % 2) })))
    const work = this.hands[step.n % Math.max(1, this.hands.length)]
    if (work === undefined || !('worker' in step)) return undefined
    const worker = `w${step.worker}`
    if (step.kind === 'started') return () => remote.started(work, worker)
    if (step.kind === 'heartbeat') return () => remote.heartbeat(work, worker)
    return () => this.complete(work, step.worker)
  }

  async complete(work: DispatchEnvelope, variant: number): Promise<void> {
    const result =
      variant === 0
        ? failure({ message: `broke in ${work.attempt_id}` })
        : { outcome: 'SUCCEEDED', materialization_id: `m${variant}_${work.attempt_id}` }
    const before = this.#onRecord()
    const answer = await this.remote.completed(work, result)
    this.told.push({ work, result, answer, changed: this.#onRecord() !== before })
  }

  #onRecord(): string {
    const { world, run } = this
    return JSON.stringify([world.run(run), world.states(run), ...assets.map((key) => world.attempts(run, key))])
  }

  /** Everybody behaves from now on. */
  async calm(): Promise<void> {
    for (let round = 0; round < 20 && !this.isOver; round++) {
      this.hands.length = 0
      await this.world.clock.advance(11 * MINUTE_MS)
      this.hands.push(...(await this.remote.ask('good', { capacity: 100 })))
      for (const work of this.hands) {
        await this.remote.started(work, 'good')
        await this.complete(work, 1)
      }
    }
  }

  get isOver(): boolean {
    const run = this.world.run(this.run)
    return run === undefined || isRunOver(run.state)
  }
}

/** A result that is accepted, and repeated when the token of its attempt has expired. */
const repeatedTooLate: Step[] = [
  { kind: 'advance', n: 4 },
  { kind: 'completed', n: 0, worker: 2 },
  ...Array.from({ length: 6 }, (): Step => ({ kind: 'advance', n: 4 })),
  { kind: 'completed', n: 0, worker: 2 },
]

test('[F8][I8][I9][V1] whatever workers say, how often and to which process: attempts are 1..n, each with one outcome, which is what its worker was told', async () => {
  const property = fc.asyncProperty(steps, async (taken) => {
    const chaos = await Chaos.begin()
    for (const step of taken) await chaos.take(step)
    await chaos.calm()
    const { world, run, told } = chaos
    expect(chaos.isOver, 'every run ends').toBe(true)
    const attempts = assets.flatMap((key) => {
      const rows = world.attempts(run, key).sort((x, y) => x.attempt - y.attempt)
      expect(rows.map(({ attempt }) => attempt)).toEqual(rows.map((_, index) => index + 1))
      for (const row of rows) expect(row.outcome).not.toBeNull()
      for (const row of rows.slice(0, -1)) expect(row.outcome).toBe('FAILED')
      return rows
    })
    for (const { work, result, answer, changed } of told) {
      const row = attempts.find(({ attempt_id }) => attempt_id === work.attempt_id)
      const isOnRecord =
        row?.outcome === result.outcome &&
        row.materialization_id === (result.materialization_id ?? null) &&
        row.error_message === (result.error?.message ?? null)
      if (answer.status === 401) {
        // Its token has expired. Nobody reads what it says then, even if it only repeats what was accepted in time.
        expect(changed, 'what is refused leaves no trace').toBe(false)
        const inTime = told.some((other) => other.answer.status === 200 && isDeepStrictEqual(other.result, result))
        expect(isOnRecord).toBe(inTime)
      } else expect([answer.status, isOnRecord]).toEqual(isOnRecord ? [200, true] : [409, false])
    }
    expect(await world.problems()).toEqual([])
  })
  await fc.assert(property, { numRuns: Math.ceil(effort.numRuns / 4), examples: [[repeatedTooLate]] })
})
