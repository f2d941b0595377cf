import type { ReportedKeys } from '../../contract/partition-keys.ts'
import { assetDefinitions } from '../../domain/assets/asset-definitions.table.ts'
import { graphOf, type RecordedGraph } from '../../domain/assets/definitions.ts'
import { GraphPartitions } from '../../domain/assets/graph-partitions.ts'
import { dynamicKeysOf, withReportedKeys } from '../../domain/partitions/dynamic-keys.ts'
import type { Reactor } from '../../engine/loop/loop.ts'
import type { Rows } from '../../model/rows.ts'

/** The graph on record. It is computed on the first use after a change. */
export class CurrentGraph {
  #known: RecordedGraph | undefined
  readonly #rows: () => Rows
  readonly #now: () => number

  constructor(rows: () => Rows, now: () => number) {
    this.#rows = rows
    this.#now = now
  }

  get reactor(): Reactor {
    return {
      watches: assetDefinitions,
      react: () => {
        this.#known = undefined
      },
    }
  }

  get(): RecordedGraph {
    this.#known ??= graphOf(this.#rows().hot(assetDefinitions).all())
    return this.#known
  }

  /** The partitions that its assets have now, or will have once changes of keys count that come with a result. */
  partitions(reported: ReportedKeys = {}): GraphPartitions {
    const dynamicKeys = withReportedKeys(dynamicKeysOf(this.#rows()), reported)
    return new GraphPartitions(this.get().mappings, { nowMs: this.#now(), dynamicKeys })
  }
}
