import { assetDefinitions } from '../domain/assets/asset-definitions.table.ts'
import { graphOf, type RecordedGraph } from '../domain/assets/definitions.ts'
import type { Reactor } from '../engine/loop.ts'
import type { Rows } from '../model/rows.ts'

/** The graph on record, worked out again when it has changed and somebody asks. */
export class CurrentGraph {
  #known: RecordedGraph | undefined
  readonly #rows: () => Rows

  constructor(rows: () => Rows) {
    this.#rows = rows
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
}
