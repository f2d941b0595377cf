import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { memoryStore } from '../../src/adapters/memory/object-store.ts'
import { orchestration } from '../../src/domain/index.ts'
import { rebuild } from '../../src/engine/check/rebuild.ts'
import { verify } from '../../src/engine/check/verify.ts'
import { encodeSegment, type Segment } from '../../src/engine/ledger/segment.ts'
import { View } from '../../src/engine/loop/view.ts'
import { newestManifest } from '../../src/engine/manifest/stored-manifests.ts'
import { Paths } from '../../src/engine/paths.ts'
import { Compactor } from '../../src/engine/publish/compactor.ts'
import { collectGarbage } from '../../src/engine/publish/garbage.ts'
import { isServoError } from '../../src/lib/error.ts'
import { canonicalJson } from '../../src/lib/json.ts'
import { ulidSource } from '../../src/lib/ulid.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import type { ObjectStore } from '../../src/ports/object-store.ts'
import { countingStore } from '../../src/testing/counting-store.ts'
import { foldAll } from '../../src/testing/histories/fold.ts'
import { histories } from '../../src/testing/histories/histories.ts'
import { legalPermutation, moves } from '../../src/testing/histories/order.ts'
import { TENANT, WORKSPACE } from '../../src/testing/histories/writers.ts'
import { storedRows } from '../../src/testing/stored-rows.ts'

const scope = { tenant_id: TENANT, workspace_id: WORKSPACE }
const numRuns = Number(process.env['SERVO_RUNS'] ?? 10)

/** What a compactor does with its day; each is done again and again between the segments of a history. */
const action = fc.constantFrom('apply', 'apply', 'apply', 'catch up', 'delta', 'delta', 'base', 'collect', 'reopen', 'rival')
const script = fc.array(action, { minLength: 3, maxLength: 40 })
const sizes = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 8 })

class Day {
  readonly store: ObjectStore
  #now = Date.parse('2026-11-15T12:00:00.000Z')
  readonly clock = { now: () => this.#now, monotonic: () => this.#now, sleep: async () => undefined }
  readonly #ulid = ulidSource(
    () => this.#now,
    (length) => new Uint8Array(length),
  )
  readonly paths = new Paths(scope)
  /** Each segment is written before anybody can fold it. */
  readonly segments: Segment[] = []

  constructor(store: ObjectStore = memoryStore()) {
    this.store = store
  }

  get options() {
    return { store: this.store, scope, registry: orchestration, clock: this.clock }
  }

  open(name: string): Promise<Compactor> {
    return Compactor.open({ ...this.options, name, limits: { max_count: 5, max_rows: 200 } })
  }

  async write(events: readonly Envelope[]): Promise<Segment> {
    this.#now += 1_000
    const segment = { ulid: this.#ulid(), events }
    const texts = events.map((event) => canonicalJson(event))
    await this.store.create(this.paths.segment(segment.ulid), encodeSegment(segment.ulid, texts))
    this.segments.push(segment)
    return segment
  }

  /** Divides events into segments and folds and publishes them as the script says. */
  async play(events: readonly Envelope[], pieces: readonly number[], todo: readonly string[]): Promise<void> {
    let compactor = await this.open('first')
    let step = 0
    for (let start = 0; start < events.length; ) {
      const size = pieces[this.segments.length % pieces.length] as number
      await this.write(events.slice(start, start + size))
      start += size
      const what = todo[step++ % todo.length]
      try {
        if (what === 'apply') await compactor.fold.apply(this.segments)
        else if (what === 'catch up') await compactor.catchUp()
        else if (what === 'delta') await this.#foldAll(compactor, () => compactor.publish({ kind: 'delta' }))
        else if (what === 'base') await this.#foldAll(compactor, () => compactor.publish({ kind: 'base' }))
        else if (what === 'collect') await collectGarbage({ ...this.options, graceMs: 0 })
        else if (what === 'reopen') compactor = await this.open(`again ${step}`)
        else await this.#rival(step)
      } catch (error) {
        // Overtaken by the rival: what a process does then is open the state again.
        if (!isServoError(error, 'conflict')) throw error
        compactor = await this.open(`after ${step}`)
      }
    }
    const last = await this.open('last')
    await last.catchUp()
    await last.publish()
  }

  async #foldAll(compactor: Compactor, publish: () => Promise<unknown>): Promise<void> {
    await compactor.catchUp()
    await publish()
  }

  async #rival(step: number): Promise<void> {
    const rival = await this.open(`rival ${step}`)
    await rival.catchUp()
    await rival.publish()
  }
}

describe('the engine over generated histories', () => {
  it('[I1][I3] any split into segments, batches and publishes, by any number of compactors, stores the same rows', async () => {
    await fc.assert(
      fc.asyncProperty(histories(), moves, sizes, script, async (history, order, pieces, todo) => {
        const events = legalPermutation(history.events, order)
        const day = new Day()
        await day.play(events, pieces, todo)
        expect(await storedRows(day.store, scope, orchestration)).toEqual(foldAll(events))
      }),
      { numRuns },
    )
  })

  it('[F4][S6][I2][I4][I5][I6] replaying the ledger in the recorded order gives the same Parquet bytes, and every named file is there', async () => {
    await fc.assert(
      fc.asyncProperty(histories(), sizes, script, async (history, pieces, todo) => {
        const day = new Day()
        await day.play(history.events, pieces, todo)
        const report = await verify({ ...day.options, scratch: memoryStore() })
        expect(report.problems).toEqual([])
        expect(report).toMatchObject({ ok: true, replayed: true, segments: day.segments.length, unfolded: [], relaid: [] })
      }),
      { numRuns },
    )
  })

  it('[I2] a rebuild after losing any derived files brings back every byte', async () => {
    await fc.assert(
      fc.asyncProperty(histories(), sizes, script, fc.infiniteStream(fc.boolean()), async (history, pieces, todo, coin) => {
        const day = new Day()
        await day.play(history.events, pieces, todo)
        await collectGarbage({ ...day.options, graceMs: 0 })
        const before = await contents(day.store, day.paths.state)
        for (const path of before.keys()) if (path.endsWith('.parquet') && coin.next().value) await day.store.delete(path)
        const report = await rebuild({ ...day.options, name: 'rebuild', scratch: memoryStore() })
        expect(report.order).toBe('recorded')
        expect(await contents(day.store, day.paths.state)).toEqual(before)
      }),
      { numRuns: Math.ceil(numRuns / 2) },
    )
  })

  it('[I17] a view reads manifests and tables, never the ledger, and follows every publish', async () => {
    await fc.assert(
      fc.asyncProperty(histories(), sizes, async (history, pieces) => {
        const day = new Day()
        const counting = countingStore(day.store)
        const compactor = await day.open('only')
        const view = await View.open({ ...day.options, store: counting })
        for (let start = 0, i = 0; start < history.events.length; i++) {
          const size = pieces[i % pieces.length] as number
          await compactor.fold.apply([await day.write(history.events.slice(start, start + size))])
          await compactor.publish()
          await view.refresh()
          start += size
          for (const [table, hot] of compactor.state.hotTables) {
            expect(new Set([...view.state.hotTable(table).all()].map((row) => canonicalJson(row)))).toEqual(
              new Set([...hot.all()].map((row) => canonicalJson(row))),
            )
          }
        }
        expect(counting.pathsUnder(day.paths.ledger)).toEqual([])
        expect(view.manifest).toEqual(await newestManifest(day.store, day.paths, scope))
      }),
      { numRuns: Math.ceil(numRuns / 2) },
    )
  })
})

async function contents(store: ObjectStore, prefix: string): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  for await (const { path } of store.list(prefix))
    found.set(path, Buffer.from((await store.get(path)) ?? []).toString('base64'))
  return found
}
