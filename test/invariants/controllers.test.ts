import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { alertKinds } from '../../src/contract/alert.ts'
import { assetDefinition } from '../../src/contract/project-manifest.ts'
import type { AlertRule } from '../../src/domain/alerts/alert-rule.ts'
import { AssetsDefined } from '../../src/domain/assets/assets-defined.event.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/lib/time.ts'
import type { Controller } from '../../src/model/controller.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import type { NewEvent } from '../../src/model/event.ts'
import type { AnyRow, Table } from '../../src/model/table.ts'
import { controllersOf, type Deciding } from '../../src/server/leader/controllers.ts'
import { runRequested } from '../../src/server/workspace/requests.ts'
import { Bench } from '../../src/testing/histories/fold.ts'
import { effort, histories } from '../../src/testing/histories/histories.ts'
import { legalPermutation, mayBeReminted, moves, withCopies } from '../../src/testing/histories/order.ts'
import { SimulatedWriter } from '../../src/testing/histories/writers.ts'

const secret = { id: 's', value: 'not a secret, only long enough' }
/** Few, so that some tasks have to wait. */
const limits = { total: 6, local: 3, ahead: 1, queues: { gpu: { limit: 4 } } }
const everything: AlertRule = { target: 'all', on: new Set(alertKinds), assets: undefined, labels: {}, since: 0 }
const deciding: Deciding = {
  instance: 'process-1',
  limits: () => limits,
  cancelGraceMs: () => MINUTE_MS,
  stuckDispatchMs: () => 10 * MINUTE_MS,
  lastSign: () => 0,
  carries: () => true,
  alerts: () => [everything],
  backfills: { requestRun: (request) => runRequested({ tenant_id: 't', workspace_id: 'w' }, secret, request) },
}

const alarms = ['TimerRequested', 'TimerFired']
/** What nobody has decided or reported yet, so that there is more to decide. */
const missing = [
  [],
  alarms,
  [...alarms, 'TaskFinished'],
  ['TaskFinished', 'DispatchRepeated'],
  ['DispatchRequested'],
  ['PlanCreated'],
  ['BackfillChunkPlanned'],
]

interface Moment {
  readonly events: readonly Envelope[]
  readonly now: number
}

/** The asset of the backfills in these histories, so that they go on. */
function defined(now: number): Envelope {
  const partitions = { type: 'daily', start: '2024-01-10', timezone: 'UTC' }
  const definition = assetDefinition.parse({ asset_key: 'asset0', kind: 'asset', partitions })
  const assets = [{ asset_key: 'asset0', asset_id: 'asset0', definition }]
  return new SimulatedWriter(8, 0, () => now).write(AssetsDefined, { graph_version: 'g', assets })
}

/** A moment in a history, and how late somebody looks at it: at once, when alarms are due, or after a long sleep. */
const moments: fc.Arbitrary<Moment> = fc
  .record({
    history: histories(),
    cut: fc.oneof(fc.constant(1_000), fc.integer({ min: 1, max: 1_000 })),
    without: fc.constantFrom(...missing),
    lateMs: fc.constantFrom(0, 20_000, 5 * MINUTE_MS, HOUR_MS, DAY_MS),
  })
  .map(({ history: { events, world }, cut, without, lateMs }) => ({
    events: [
      defined(world.now),
      ...events
        .slice(0, Math.ceil((cut * events.length) / 1_000))
        .filter(({ event_type }) => !without.includes(event_type) && event_type !== 'AssetsDefined'),
    ],
    now: world.now + lateMs,
  }))
  .filter(({ events }) => events.length > 0)

interface Decision {
  readonly by: string
  readonly type: string
  readonly key: string
  readonly event: NewEvent
}

function decisionOf(by: string, event: NewEvent): Decision {
  const { definition, payload } = event
  const parsed = definition.parse(payload)
  if (!parsed.success) throw new Error(`${by} decided a ${definition.type} that cannot be written`)
  return { by, type: definition.type, key: definition.idempotencyKey(parsed.data), event }
}

type Order = <T>(items: readonly T[]) => readonly T[]
const asItIs: Order = (items) => items
const backwards: Order = (items) => items.toReversed()

/** Shows every row to every controller, as a start or a sweep does. */
function showAll(controllers: readonly Controller[], bench: Bench, order: Order = asItIs): void {
  for (const controller of controllers) {
    for (const table of order(controller.watches)) {
      for (const row of order([...rowsOf(bench, table)])) controller.observe(table, row)
    }
  }
}

const rowsOf = (bench: Bench, table: Table): Iterable<Readonly<AnyRow>> => bench.state.hotTable(table).all()

function askAll(controllers: readonly Controller[], bench: Bench, now: number, order: Order = asItIs): Decision[] {
  return order(controllers).flatMap((controller) =>
    controller
      .decide({ rows: bench.state, now, lagMs: 0 })
      .flat()
      .map((event) => decisionOf(controller.name, event)),
  )
}

/** Which decisions there are, whoever was asked first. What depends on the order of keys is compared as it is: within a controller. */
function shown(decisions: readonly Decision[]): unknown[] {
  const texts = decisions.map(({ by, type, key, event: { definition: _, ...said } }) =>
    JSON.stringify({ by, type, key, ...said }),
  )
  return texts.sort()
}

function folded(events: readonly Envelope[]): Bench {
  const bench = new Bench()
  bench.fold(events)
  return bench
}

const started = (bench: Bench, now: number, order: Order = asItIs): Decision[] => {
  const controllers = controllersOf(deciding)
  showAll(controllers, bench, order)
  return askAll(controllers, bench, now, order)
}

describe('every controller', () => {
  test('has something to decide in these histories', () => {
    const heard = new Set<string>()
    const types = new Set<string>()
    // The same histories every time: this is about the generator, and not about luck.
    for (const { events, now } of fc.sample(moments, { seed: 1, numRuns: 500 }))
      for (const { by, type } of started(folded(events), now)) {
        heard.add(by)
        types.add(type)
      }
    expect(types, 'backfills go on').toContain('BackfillChunkPlanned')
    const silent = controllersOf(deciding).filter(({ name }) => !heard.has(name))
    expect(silent.map(({ name }) => name)).toEqual([])
  })

  test('[I15] decides by the rows alone: in any process, in whatever order rows are shown and controllers asked', () => {
    const property = fc.property(moments, ({ events, now }) => {
      const bench = folded(events)
      const first = started(bench, now)
      expect(shown(started(bench, now, backwards))).toEqual(shown(first))
      bench.restart()
      expect(shown(started(bench, now)), 'from copies of the rows').toEqual(shown(first))
    })
    fc.assert(property, effort)
  })

  test('[I15][I16] asked again about rows that it is shown again, decides the same, with the same ids', () => {
    const property = fc.property(moments, ({ events, now }) => {
      const bench = folded(events)
      const controllers = controllersOf(deciding)
      showAll(controllers, bench)
      showAll(controllers, bench, backwards)
      const first = askAll(controllers, bench, now)
      const keys = first.map(({ key }) => key)
      for (const { by, key } of first) {
        // Two may see different reasons to end one attempt; whichever is folded first counts.
        const others = first.filter((other) => other.key === key && other.by === by)
        expect(others, `${by} decides ${key} once`).toHaveLength(1)
      }
      showAll(controllers, bench)
      expect(askAll(controllers, bench, now).map(({ key }) => key)).toEqual(keys)
    })
    fc.assert(property, effort)
  })

  test('[I15] decides the same after its history was replayed in another order, with repetitions', () => {
    const property = fc.property(moments, moves, moves, ({ events, now }, moved, copied) => {
      const replayed = withCopies(
        legalPermutation(events, moved),
        copied,
        (event, copy) => copy % 2 === 0 && mayBeReminted(event),
      )
      expect(shown(started(folded(replayed), now))).toEqual(shown(started(folded(events), now)))
    })
    fc.assert(property, effort)
  })

  test('[O3][I15] decides nothing twice: once its decisions are folded, looking at every row again finds only what follows from them', () => {
    const property = fc.property(moments, ({ events, now }) => {
      const bench = folded(events)
      const writer = new SimulatedWriter(9, 0, () => now)
      const controllers = controllersOf(deciding)
      const before = new Map<string, string>()
      let rounds = 0
      for (;;) {
        showAll(controllers, bench)
        const decisions = askAll(controllers, bench, now)
        if (decisions.length === 0) break
        for (const { by, key } of decisions) {
          const round = before.get(`${by} ${key}`)
          expect(round, `${by} decides ${key} again in round ${rounds}`).toBeUndefined()
        }
        for (const { by, key } of decisions) before.set(`${by} ${key}`, String(rounds))
        const written = decisions.map(({ event }) => writer.write(event.definition, event.payload as Record<string, unknown>))
        bench.fold(written)
        // A process that died before it heard of its own write: everything of it arrives again.
        bench.fold(written)
        expect(++rounds, 'deciding comes to an end').toBeLessThan(100)
      }
      expect(started(bench, now), 'whoever starts anew has nothing to add').toEqual([])
    })
    fc.assert(property, effort)
  })
})
