import type { LeftOut, Only, PreviewBody } from '../../../api/run-contract.ts'
import { keysOfAsset } from '../../../domain/assets/former-keys.ts'
import type { AssetGraph } from '../../../domain/assets/graph.ts'
import { type GraphPartitions, taskKey } from '../../../domain/assets/graph-partitions.ts'
import { isReadable, partitionStatus } from '../../../domain/partitions/partition-status.table.ts'
import type { ReasonToMake } from '../../../domain/partitions/status-names.ts'
import { exactSelections, exactWork } from '../../../domain/planning/exact-work.ts'
import { inputsOutside, type NeededInputs, type Readers } from '../../../domain/planning/outside-inputs.ts'
import { LATEST, timesOf } from '../../../domain/planning/parse-partitions.ts'
import { type ChosenWork, chooseWork, type WorkSelection } from '../../../domain/planning/plan-choice.ts'
import { plainKey } from '../../../domain/selection/parser.ts'
import { ServoError } from '../../../lib/error.ts'
import { partitionsInWords } from '../../../partitions/in-words.ts'
import type { PartitionSet } from '../../../partitions/partition-set.ts'
import { joinedStatus } from '../../leader/joined-status.ts'
import type { Knowledge } from '../knowledge.ts'
import type { Statuses } from '../status/statuses.ts'
import { neverMade } from './inputs-missing.ts'

/** What came of a request for a run, before it is made. */
export interface RunChoice {
  /** As the run is to be requested; undefined when there is nothing to do. */
  readonly work: WorkSelection | undefined
  readonly chosen: ChosenWork
  readonly left_out: readonly LeftOut[]
  /** What was selected, before `only` took some of it, if that is a single task. */
  readonly sole: string | undefined
}

/**
 * Finds out what a request means now, and refuses it if its run could not succeed: a run without anything to make, or whose inputs were
 * never made, would only fail later. Now the caller is still there to read the reason.
 */
export async function chooseRun(known: Knowledge, statuses: Statuses, body: PreviewBody): Promise<RunChoice> {
  const { select: selection = ['*'], partitions: named, only } = body
  const { graph } = known.graph.get()
  const partitions = known.graph.partitions()
  const asked = { asset_selection: selection, partition_selection: named ?? null }
  // Whatever is stale is meant, in whichever partition it is.
  const meant = only !== undefined && named === undefined ? { ...asked, partition_selection: ['*'] } : asked
  const all = chooseWork(meant, graph, partitions)
  if ('error' in all) throw new ServoError('invalid', 'bad_selection', all.error)
  if (named !== undefined) refuseUnpartitioned(all, named, partitions)
  const empty = all.order.filter((key) => all.partitions.get(key)?.size === 0)
  const left_out = [
    ...namedSources(selection, graph),
    ...(named === undefined ? [] : empty.map((key) => ({ asset_key: key, why: whyEmpty(partitions.of(key), named) }))),
  ]
  if (only === undefined && empty.length === all.order.length) throw nothingExists(left_out)
  const chosen = only === undefined ? all : await pick(all, only, statuses)
  const isNothing = chosen.order.length === 0
  if (!isNothing) await refuseWithoutInputs(known, chosen, body)
  const work = isNothing ? undefined : only === undefined ? asked : exactWork(chosen.partitions, partitions)
  return { work, chosen, left_out, sole: soleTask(all) }
}

function soleTask({ partitions }: ChosenWork): string | undefined {
  const [first, another] = [...partitions].filter(([, keys]) => keys.size > 0)
  if (first === undefined || another !== undefined || first[1].size > 1) return undefined
  const [key, [partition = '']] = first
  return taskKey(key, partition)
}

const isOnly: Readonly<Record<Only, (reasons: readonly ReasonToMake[]) => boolean>> = {
  stale: (reasons) => reasons.some((reason) => reason !== 'last_attempt_failed'),
  missing: (reasons) => reasons.includes('never_materialized'),
  failed: (reasons) => reasons.includes('last_attempt_failed'),
}

async function pick({ order, partitions }: ChosenWork, only: readonly Only[], statuses: Statuses): Promise<ChosenWork> {
  const picked = new Map<string, ReadonlySet<string>>()
  for (const [key, reasons] of await statuses.reasons(partitions)) {
    const wanted = [...reasons].filter(([, each]) => only.some((one) => isOnly[one](each))).map(([partition]) => partition)
    if (wanted.length > 0) picked.set(key, new Set(wanted))
  }
  return { order: order.filter((key) => picked.has(key)), partitions: picked }
}

function refuseUnpartitioned({ order }: ChosenWork, named: readonly string[], partitions: GraphPartitions): void {
  if (named.length === 0 || order.some((key) => partitions.of(key).definition !== undefined)) return
  const [first = '', ...more] = order
  const assets = more.length === 0 ? `${first} has no partitions` : `none of the ${order.length} assets has partitions`
  throw new ServoError('invalid', 'no_partitions', `the request names the partition ${named[0]}, but ${assets}`, {
    hint: 'Remove the partition from the request.',
  })
}

/** A source that a pattern includes is no surprise; one that was named is. */
function namedSources(selection: readonly string[], graph: AssetGraph): LeftOut[] {
  const named = selection.map((entry) => (graph.assets.has(entry) ? entry : (plainKey(entry) ?? '')))
  const sources = [...new Set(named)].filter((key) => graph.assets.has(key) && !graph.canBeMade(key))
  return sources.map((key) => ({ asset_key: key, why: 'other programs materialize this source' }))
}

function whyEmpty(set: PartitionSet, named: readonly string[]): string {
  const { definition } = set
  if (timesOf(set).length === 0 && named.every((entry) => entry === LATEST))
    return 'it has no time partitions, so `latest` does not apply to it'
  if (definition?.type === 'dynamic')
    return `${definition.name} has no keys yet; add some: servo partitions add ${definition.name} <key>`
  return `none of its partitions exists yet${definition === undefined ? '' : ` (${partitionsInWords(definition)})`}`
}

const nothingExists = ([first, ...more]: readonly LeftOut[]): ServoError =>
  new ServoError(
    'invalid',
    'no_such_partition',
    `there is nothing to materialize for ${first?.asset_key}${more.length > 0 ? ` and ${more.length} more` : ''}: ${first?.why}`,
    { hint: 'Try again once it has partitions.' },
  )

/** What has to be made first, and the command that makes it too. */
async function refuseWithoutInputs(known: Knowledge, chosen: ChosenWork, asked: PreviewBody): Promise<void> {
  const { graph } = known.graph.get()
  const partitions = known.graph.partitions()
  const missing = await missingInputs(known, chosen)
  if (missing.size === 0) return
  // What is missing may be made from something that is missing as well.
  const toMake = new Map<string, Set<string>>()
  for (let found = missing; found.size > 0; ) {
    for (const [key, keys] of found) toMake.set(key, new Set([...(toMake.get(key) ?? []), ...keys.keys()]))
    const union = new Map(toMake)
    for (const [key, keys] of chosen.partitions) union.set(key, new Set([...keys, ...(union.get(key) ?? [])]))
    found = await missingInputs(known, { order: graph.order.filter((key) => union.has(key)), partitions: union })
  }
  const first = new Map(graph.order.flatMap((key) => (toMake.has(key) ? [[key, toMake.get(key) ?? []] as const] : [])))
  throw neverMade(missing, exactSelections(first, partitions), asked)
}

/** The inputs of this work that neither exist nor are made by it, by asset and partition. */
async function missingInputs(known: Knowledge, work: ChosenWork): Promise<NeededInputs> {
  const missing = new Map<string, ReadonlyMap<string, Readers>>()
  for (const [upstream, needed] of inputsOutside(work, known.graph.get().graph, known.graph.partitions())) {
    const names = keysOfAsset(known.rows(), upstream)
    const keys = [...needed.keys()]
    const rows = (
      await known.coldRows(partitionStatus).lookup(keys.flatMap((key) => names.map((name) => [name, key])))
    ).values()
    const absent = [...needed].filter(() => !isReadable(joinedStatus([...rows.take(names.length)])))
    if (absent.length > 0) missing.set(upstream, new Map(absent))
  }
  return missing
}
