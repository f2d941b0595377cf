import type { Spans } from '../../../partitions/spans.ts'
import type { GraphPartitions } from '../../assets/graph-partitions.ts'
import { staleLink } from '../../partitions/stale-links.ts'
import type { ChosenPositions } from './asked-positions.ts'
import { MAX_MAPPED } from './too-many.ts'

/**
 * Refuses a backfill of a partition that is made from one that does not exist, as a run of it is refused. Nothing of its chunk could be planned,
 * so others would fail with it. What is too much to be looked at is found out when its chunk is planned.
 */
export function refuseImpossible(chosen: ChosenPositions, partitions: GraphPartitions): void {
  for (const [asset, positions] of chosen) {
    for (const link of partitions.links(asset)) {
      if (link.upstream === asset || positions.count === 0) continue
      const { isSame, isFixed, needed } = staleLink(asset, link, partitions)
      if (isSame) continue
      // Windows before the first and after the last are what may be absent, so the ends of the backfill tell.
      const endsTell = link.mapping.type === 'time_window'
      for (const at of isFixed || endsTell ? ends(positions) : positionsIn(positions))
        if (needed(at).absent > 0) partitions.neededBy(asset, link, partitions.of(asset).at(at))
    }
  }
}

const ends = (positions: Spans): readonly number[] => [positions.at(0), positions.at(positions.count - 1)]

function* positionsIn({ list, count }: Spans): Iterable<number> {
  if (count > MAX_MAPPED) return
  for (const { from, to } of list) for (let at = from; at <= to; at++) yield at
}
