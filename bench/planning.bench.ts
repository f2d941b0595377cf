import { type AssetDefinitionInput, assetDefinition } from '../src/contract/project-manifest.ts'
import { AssetGraph } from '../src/domain/assets/graph.ts'
import { GraphMappings } from '../src/domain/assets/graph-mappings.ts'
import { GraphPartitions } from '../src/domain/assets/graph-partitions.ts'
import { orchestration } from '../src/domain/index.ts'
import { planRun } from '../src/domain/planning/plan.ts'
import { PlanCreated } from '../src/domain/tasks/plan-created.event.ts'
import { EventFold } from '../src/engine/fold/event-fold.ts'
import { State } from '../src/engine/fold/state.ts'
import { type CheckedEvent, mintEvents, sizeLimits } from '../src/engine/ledger/mint.ts'
import { ulidSource } from '../src/lib/ulid.ts'
import { newEvent } from '../src/model/event.ts'
import type { KeyPart } from '../src/model/rows.ts'
import { runRequested } from '../src/server/workspace/requests.ts'
import { processorTime } from './lib/processor-time.ts'
import { quick, Report } from './lib/report.ts'
import { median, sum } from './lib/stats.ts'
import { scope } from './lib/stream.ts'
import { number, ratio } from './lib/table.ts'

/*
 * What a plan costs: from the request to tasks and edges, to events that were checked, to rows that wait. Beside it the
 * least that writing it down could cost: JSON.stringify of the same events. Both in processor time.
 */
const SIZES = quick ? [3, 30] : [3, 30, 300]
const TASKS_PER_SIZE = 333
/** A small plan is over before the compiler has seen it, so it is made often enough to be compiled. */
const ROUNDS = (assets: number): number => Math.max(quick ? 2 : 3, Math.round((quick ? 60 : 200) / assets))

const daily = { type: 'daily', start: '2024-01-01', timezone: 'Europe/Paris' }
const region = { type: 'keys', keys: ['eu', 'us', 'apac'] }
const monthly = { type: 'monthly', start: '2024-01', timezone: 'Europe/Paris' }
const nowMs = Date.UTC(2025, 5, 1)

interface Kind {
  readonly partitions: (index: number) => AssetDefinitionInput['partitions']
  readonly asked: string
}

/** Chains of assets, each made from the one before; 333 partitions each. */
const kinds: Record<string, Kind> = {
  'days from the same days': { partitions: () => daily, asked: '2024-01-01..2024-11-28' },
  'days × regions from the same': {
    partitions: () => ({ type: 'multi', dimensions: { date: daily, region } }),
    asked: 'date=2024-01-01..2024-04-20',
  },
  'days from months and months from days, in turns': {
    partitions: (index) => (index % 3 === 2 ? monthly : daily),
    asked: '2024-01-01..2024-11-28',
  },
}

interface Round {
  readonly tasks: number
  readonly plan: number
  readonly mint: number
  readonly fold: number
  readonly json: number
}

const mintOptions = {
  scope,
  clock: { now: () => nowMs, sleep: async () => {} },
  ulid: ulidSource(
    () => nowMs,
    (length) => new Uint8Array(length),
  ),
  source: 'bench',
}

/** What the loop does with a request: asks the planner, checks each of its events, and folds it. */
function round(graph: AssetGraph, mappings: GraphMappings, asked: string): Round {
  const state = new State(orchestration)
  const eventFold = new EventFold(orchestration, state)
  const asking = { asset_selection: ['*'], partition_selection: [asked] }
  const source = { type: 'manual', user_id: 'ada', request_id: '1' } as const
  const { run_id, event } = runRequested(
    scope,
    { id: 's', value: 'secret' },
    { ...asking, run_key: 'manual:1', labels: {}, source },
  )
  const foldAll = (made: readonly CheckedEvent[]): void => {
    for (const { event, definition } of made) {
      eventFold.trust(event, definition)
      for (const { table, key } of eventFold.reads([event])) state.coldTable(table).provide([...key] as KeyPart[], undefined)
      const verdict = eventFold.fold(event)
      if (verdict.kind !== 'applied') throw new Error(`${event.event_type} was ${verdict.kind}`)
    }
    eventFold.forgetTrusted()
  }
  foldAll(mintEvents(mintOptions, sizeLimits, [event]).checked)
  // Each starts with the same memory: what one left behind is not the next one's to tidy up.
  globalThis.gc?.()
  const [planned, plan] = timed(() => {
    const partitions = new GraphPartitions(mappings, { nowMs, dynamicKeys: () => [] })
    return planRun({ run: { ...asking, run_id, priority: 0 }, graph, graphVersion: 'g1', partitions })
  })
  if ('error' in planned) throw new Error(planned.error)
  const [made, mint] = timed(() =>
    planned.events.flatMap((part) => mintEvents(mintOptions, sizeLimits, [newEvent(PlanCreated, part)]).checked),
  )
  const [, fold] = timed(() => foldAll(made))
  const [, json] = timed(() => {
    for (const { event } of made) JSON.stringify(event)
  })
  return { tasks: sum(planned.events.map(({ tasks }) => tasks.length)), plan, mint, fold, json }
}

function timed<T>(work: () => T): [result: T, us: number] {
  const start = process.cpuUsage()
  const result = work()
  return [result, processorTime(start) * 1_000]
}

const report = new Report('planning', `plans of chains of ${SIZES.join(', ')} assets with ${TASKS_PER_SIZE} partitions each`)
const rows: string[][] = [
  ['partitions', 'tasks', 'plan µs/task', 'check', 'fold', 'all', 'JSON.stringify', 'all : JSON', 'all : smallest'],
]
for (const [kind, { partitions, asked }] of Object.entries(kinds)) {
  let smallest: number | undefined
  for (const assets of SIZES) {
    const definitions = Array.from({ length: assets }, (_, i) =>
      assetDefinition.parse({
        asset_key: `warehouse/table_${i}`,
        kind: 'asset',
        partitions: partitions(i),
        deps: i === 0 ? [] : [{ asset_key: `warehouse/table_${i - 1}` }],
      }),
    )
    const graph = new AssetGraph(definitions)
    const mappings = new GraphMappings(graph)
    const count = ROUNDS(assets)
    // The first half warms up.
    const rounds = Array.from({ length: 2 * count }, () => round(graph, mappings, asked)).slice(count)
    const tasks = rounds[0]?.tasks ?? 0
    const perTask = (of: (round: Round) => number): number => median(rounds.map((each) => of(each) / each.tasks))
    const all = perTask(({ plan, mint, fold }) => plan + mint + fold)
    smallest ??= all
    report.samples(
      `${kind}, ${tasks} tasks`,
      'µs per task',
      rounds.map(({ plan, mint, fold }) => (plan + mint + fold) / tasks),
    )
    const json = perTask((each) => each.json)
    rows.push([
      kind,
      number(tasks),
      ...[perTask((each) => each.plan), perTask((each) => each.mint), perTask((each) => each.fold), all, json].map(number),
      ratio(all / json),
      ratio(all / smallest),
    ])
  }
}
report.table('Processor time per task', rows)
report.finish()
