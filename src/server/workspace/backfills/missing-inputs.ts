import type { BackfillPreview } from '../../../api/automation/backfill-contract.ts'
import type { AssetGraph } from '../../../domain/assets/graph.ts'
import { type GraphPartitions, taskKey } from '../../../domain/assets/graph-partitions.ts'
import { type ChosenPositions, upstreamPositions } from '../../../domain/backfills/selecting/asked-positions.ts'
import { MAX_PARTITIONS, MAX_SPANS } from '../../../domain/backfills/selecting/too-many.ts'
import { isServoError, ServoError } from '../../../lib/error.ts'
import { shellWord } from '../../../lib/process/shell-word.ts'
import { difference, type Spans, spans, union } from '../../../partitions/spans.ts'
import type { Statuses } from '../status/statuses.ts'

export type MissingInputs = BackfillPreview['missing_inputs']

/** As many as one reads. */
const SHOWN_KEYS = 3

/** What a backfill reads that neither exists nor is made by it. Sources are made elsewhere, so they are not among it. */
export async function missingInputs(
  { graph, partitions }: { readonly graph: AssetGraph; readonly partitions: GraphPartitions },
  statuses: Statuses,
  chosen: ChosenPositions,
): Promise<MissingInputs> {
  const needed = new Map<string, Map<string, Spans>>()
  for (const [reader, positions] of chosen) {
    if (positions.count === 0) continue
    for (const { asset_key: upstream, mapping: said } of Object.values(graph.definition(reader).inputs)) {
      if (!graph.canBeMade(upstream)) continue
      const link = { upstream, mapping: partitions.mapping(reader, upstream, said) }
      const outside = difference(
        readPositions(() => upstreamPositions(reader, link, positions, partitions, MAX_SPANS)),
        chosen.get(upstream) ?? spans([]),
      )
      if (outside.count > 0 && outside.count <= MAX_PARTITIONS && statuses.canTell(upstream))
        needed.set(upstream, (needed.get(upstream) ?? new Map()).set(reader, outside))
    }
  }
  if (needed.size === 0) return []
  const asked = new Map([...needed].map(([upstream, readers]) => [upstream, union([...readers.values()])]))
  const absent = await statuses.positionsOf(asked, 'missing')
  return [...needed].flatMap(([upstream, readers]) =>
    [...readers].flatMap(([asset_key, positions]) => {
      const missing = difference(positions, difference(positions, absent.get(upstream) ?? spans([])))
      if (missing.count === 0) return []
      const set = partitions.of(upstream)
      const keys = Array.from({ length: Math.min(SHOWN_KEYS, missing.count) }, (_, i) => set.at(missing.at(i)))
      return [{ asset_key, upstream, partitions: missing.count, first: set.definition === undefined ? [] : keys }]
    }),
  )
}

/** What is too much to be looked at now is found out when its task begins. */
function readPositions(read: () => Spans): Spans {
  try {
    return read()
  } catch (error) {
    if (isServoError(error) && error.code === 'too_many_partitions') return spans([])
    throw error
  }
}

/** `months needs days[2024-01-01], days[2024-01-02] and 29 more, which were never materialized`. */
export function inputsInWords({ asset_key, upstream, partitions, first }: MissingInputs[number]): string {
  const shown = first.length === 0 ? upstream : first.map((key) => taskKey(upstream, key)).join(', ')
  const more = partitions - Math.max(1, first.length)
  return `${asset_key} needs ${shown}${more > 0 ? ` and ${more} more` : ''}, which ${partitions === 1 ? 'was' : 'were'} never materialized`
}

/** A backfill is refused because nothing of it that reads these could succeed. */
export function inputsMissing(missing: MissingInputs): ServoError {
  const upstream = [...new Set(missing.map((each) => each.upstream))].map(shellWord).join(' ')
  return new ServoError('invalid', 'inputs_missing', missing.map(inputsInWords).join('\n  '), {
    hint: `Select ${upstream} too, or materialize it first: servo backfills create ${upstream} --only missing`,
    facts: { missing_inputs: missing },
  })
}
