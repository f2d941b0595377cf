import { existsSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import type { WireBackfill } from '../../src/api/automation/backfill-contract.ts'
import type { ServoClient } from '../../src/client/client.ts'
import { unpackSpans } from '../../src/partitions/spans.ts'
import { projectOf, type TestProject } from '../e2e/support/project.ts'
import type { Servo } from '../e2e/support/servo.ts'
import { until } from '../e2e/support/until.ts'

/** More with `SERVO_BACKFILL_KILLS=50`. The last is of a server that is retrying what failed. */
const KILLS = Number(process.env['SERVO_BACKFILL_KILLS'] ?? 2)
/** Enough that every kill comes in the middle. */
const COUNT = KILLS < 10 ? 600 : 2_000
const CHUNK = 20
const keyOf = (index: number): string => `p${String(index).padStart(4, '0')}`
const KEYS = Array.from({ length: COUNT }, (_, index) => keyOf(index))
const isBad = (key: string): boolean => Number(key.slice(1)) % 97 === 5

/** Each task notes itself in a file when its code gets to its end, with the run it belongs to. Some fail until they are repaired. */
const PROJECT = `import { appendFileSync, existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { asset, keys } from 'servo-flow'
const partitions = keys(Array.from({ length: ${COUNT} }, (_, i) => 'p' + String(i).padStart(4, '0')))
const noted = (name, more) => asset(name, {
  partitions,
  ...more,
  async run({ partition, runId }) {
    await sleep(Math.random() * 4)
    const isBad = name === 'first' && Number(partition.key.slice(1)) % 97 === 5 && !existsSync('repaired')
    appendFileSync('noted-' + name, [partition.key, runId, isBad ? 'failed' : 'made'].join(' ') + '\\n')
    if (isBad) throw new Error('not yet')
  },
})
export const first = noted('first', {})
export const second = noted('second', { deps: [first] })
export const third = noted('third', {})
`

interface Line {
  readonly key: string
  readonly run: string
  readonly outcome: string
}

/** A backfill that must get to its end, one that is cancelled, and the servers that are killed meanwhile. */
class Backfilled {
  readonly project: TestProject = projectOf({ 'assets/a.ts': PROJECT })
  main = ''
  other = ''
  /** What the version of the main backfill must be by now: it is created, and it begins. */
  version = 2
  isCancelled = false
  #requests = 0
  #dev: Servo | undefined

  get #client(): ServoClient {
    return this.project.clientOf(this.#dev as Servo)
  }

  lines(asset: string): Line[] {
    const file = this.project.file(`noted-${asset}`)
    if (!existsSync(file)) return []
    const words = readFileSync(file, 'utf8')
      .trim()
      .split('\n')
      .map((line) => line.split(' '))
    return words.map(([key = '', run = '', outcome = '']) => ({ key, run, outcome }))
  }

  async start(): Promise<void> {
    this.#dev = await this.project.dev()
  }

  async kill(): Promise<void> {
    this.#dev?.kill('SIGKILL')
    await this.#dev?.ended
  }

  async stop(): Promise<void> {
    this.#dev?.kill('SIGINT')
    expect(await this.#dev?.ended).toMatchObject({ code: 0 })
  }

  async create(): Promise<void> {
    const asked = { partitions: { type: 'all' as const }, chunk_size: CHUNK }
    const { backfills } = this.#client
    const main = await backfills.create({ ...asked, select: ['first', 'second'], max_concurrent_runs: 3 }, 'ada')
    const other = await backfills.create({ ...asked, select: ['third'], max_concurrent_runs: 1 }, 'ada')
    this.main = main.backfill_id as string
    this.other = other.backfill_id as string
  }

  async shown(id = this.main): Promise<WireBackfill> {
    return (await this.#client.backfills.get(id)).backfill
  }

  /**
   * Asks a server for something and kills it before, while or after it answers; asks the next one the same. It has happened once, then:
   * if the first did not get to it, the second does.
   */
  async throughKill<T>(ask: (client: ServoClient, request_id: string) => Promise<T>): Promise<T> {
    const request = `r${this.#requests++}`
    const first = ask(this.#client, request).catch(() => undefined)
    await sleep(Math.random() * 40)
    await this.kill()
    await first
    await this.start()
    return await ask(this.#client, request)
  }

  /** A pause plans nothing more, in whatever server; then it goes on. */
  async pausedThroughKill(): Promise<void> {
    const paused = await this.throughKill((client, request_id) => client.backfills.pause(this.main, { request_id }, 'ada'))
    this.version += 1
    expect(paused).toMatchObject({ state_version: this.version, message: 'backfill paused' })
    const { planned_chunks } = await this.shown()
    await sleep(100 + Math.random() * 300)
    expect(await this.shown()).toMatchObject({ planned_chunks, state: expect.stringMatching(/^PAUSED/) })
    await this.#client.backfills.resume(this.main, { request_id: `r${this.#requests++}` }, 'ada')
    this.version += 1
    expect(await this.shown()).toMatchObject({ state: 'RUNNING', state_version: this.version })
  }

  async cancelledThroughKill(): Promise<void> {
    const cancel_runs = Math.random() < 0.5
    await this.throughKill((client, request_id) => client.backfills.cancel(this.other, { request_id, cancel_runs }, 'ada'))
    this.isCancelled = true
  }

  /** Somewhere on the way: at once, or at any moment while work goes on. */
  async killedOnTheWay(): Promise<void> {
    await sleep(Math.random() * 500)
    await this.kill()
    await this.start()
  }

  async over(id: string): Promise<WireBackfill> {
    await until(async () => (await this.shown(id)).finished_at !== null, `${id} comes to its end`)
    return await this.shown(id)
  }

  async retried(): Promise<string> {
    this.project.write('repaired')
    const retry = (client: ServoClient, request_id: string) =>
      client.backfills.retryFailed(this.main, { request_id, max_concurrent_runs: 1 }, 'ada')
    const child = await this.throughKill(retry)
    expect((await retry(this.#client, `r${this.#requests - 1}`)).backfill_id).toBe(child.backfill_id)
    return child.backfill_id as string
  }

  async assets(id: string) {
    return (await this.#client.backfills.get(id)).assets
  }

  /** By the chunks on record: each partition is in one, and which run that has. */
  async runsOf(id: string): Promise<Map<string, string | null>> {
    const runs = new Map<string, string | null>()
    const rows: Record<string, unknown>[] = await this.project.query(
      `select chunk_index, positions, run_id from backfill_chunks where backfill_id = '${id}' order by chunk_index`,
    )
    expect(rows.map(({ chunk_index }) => Number(chunk_index))).toEqual(rows.map((_, index) => index))
    for (const { positions, run_id } of rows) {
      const spans = unpackSpans((positions as (number | bigint)[]).map(Number))
      for (const { from, to } of spans.list) {
        for (let at = from; at <= to; at++) {
          expect(runs.has(keyOf(at)), `${keyOf(at)} is planned once`).toBe(false)
          runs.set(keyOf(at), run_id as string | null)
        }
      }
    }
    return runs
  }
}

describe('a backfill of many partitions', { timeout: 120_000 + KILLS * 20_000 }, () => {
  test(`[I14][L1] through ${KILLS} kills, pauses, a cancellation and a retry: every partition is planned once, and nothing is lost`, async () => {
    const backfilled = new Backfilled()
    await backfilled.start()
    await backfilled.create()
    const { main, other, project } = backfilled
    for (let kill = 1; kill < KILLS; kill++) {
      const share = Math.floor((kill * COUNT) / (KILLS + 1))
      await until(() => backfilled.lines('first').length >= share, `${share} partitions are made`)
      if (kill % 3 === 1) await backfilled.pausedThroughKill()
      else if (kill >= KILLS / 2 && !backfilled.isCancelled) await backfilled.cancelledThroughKill()
      else await backfilled.killedOnTheWay()
    }
    if (!backfilled.isCancelled) await backfilled.cancelledThroughKill()

    const bad = KEYS.filter(isBad)
    const ended = await backfilled.over(main)
    expect(ended).toMatchObject({
      state: 'FAILED',
      state_version: backfilled.version + 1,
      planned_chunks: COUNT / CHUNK,
      succeeded_partitions: 2 * (COUNT - bad.length),
      failed_partitions: bad.length,
      skipped_partitions: bad.length,
    })
    const child = await backfilled.retried()
    expect(await backfilled.over(child)).toMatchObject({
      state: 'SUCCEEDED',
      parent_backfill_id: main,
      succeeded_partitions: 2 * bad.length,
    })
    const cancelled = await backfilled.over(other)
    expect(cancelled).toMatchObject({ state: 'CANCELLED', failed_partitions: 0, active_chunks: [] })
    const [failed, skipped] = await backfilled.assets(main)
    expect([failed?.failed.keys, skipped?.skipped.keys]).toEqual([bad, bad])
    // A server that stops waits for its last publish only so long.
    await until(async () => (await backfilled.runsOf(child)).size === bad.length, 'the tables show the last backfill')
    await backfilled.stop()

    // What tasks wrote, beside what is on record.
    const [mainRuns, childRuns, otherRuns] = await Promise.all([main, child, other].map((id) => backfilled.runsOf(id)))
    expect([...(mainRuns?.keys() ?? [])]).toEqual(KEYS)
    const isDone = (key: string): boolean => !isBad(key)
    for (const asset of ['first', 'second']) {
      const lines = backfilled.lines(asset)
      const stray = lines.filter(({ key, run }) => mainRuns?.get(key) !== run && childRuns?.get(key) !== run)
      expect(stray, `only runs of chunks made ${asset}`).toEqual([])
      const ofMain = new Set(lines.filter(({ key, run }) => mainRuns?.get(key) === run && !isBad(key)).map(({ key }) => key))
      expect([...ofMain].sort()).toEqual(KEYS.filter(isDone))
      const ofChild = new Set(lines.filter(({ run, key }) => childRuns?.get(key) === run).map(({ key }) => key))
      expect([...ofChild].sort(), `the retry made what failed, and nothing else`).toEqual(bad)
    }
    const third = backfilled.lines('third')
    expect(third.filter(({ key, run }) => otherRuns?.get(key) !== run)).toEqual([])
    expect(new Set(third.map(({ key }) => key)).size).toBeGreaterThanOrEqual(cancelled.succeeded_partitions)
    expect(cancelled.succeeded_partitions + cancelled.cancelled_partitions).toBe(otherRuns?.size)

    const [runs] = await project.query(
      'select count(*)::int as runs, (select count(run_id)::int from backfill_chunks) as chunks from runs',
    )
    expect(runs?.['runs'], 'no run but those of chunks').toBe(runs?.['chunks'])
    expect(await project.servo('verify', '.servo')).toMatchObject({ code: 0 })
  })
})
