import type { AlertDefinition } from '../../../contract/alert.ts'
import { type AlertRule, ruleOf } from '../../../domain/alerts/alert-rule.ts'
import type { AssetGraph } from '../../../domain/assets/graph.ts'
import { selectedAssets } from '../../../domain/selection/selected-assets.ts'
import { MINUTE_MS } from '../../../lib/time.ts'

/** What ended so long before a start is still news: the process before may have ended without telling of it. */
const BEFORE_START_MS = 10 * MINUTE_MS

/** The alerts of the project as it was last loaded. */
export class AlertRules {
  #definitions: readonly AlertDefinition[] = []
  #rules: readonly AlertRule[] = []
  /** Since when an alert has been as it is: what happened before it was declared is no news to it. */
  #since = new Map<string, number>()
  readonly #startedAt: number
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
    this.#startedAt = now()
  }

  /** Throws if a selection cannot be read. */
  use(definitions: readonly AlertDefinition[], graph: AssetGraph): void {
    const isFirst = this.#since.size === 0 && this.#rules.length === 0
    const since = new Map<string, number>()
    const rules = definitions.map((definition) => {
      const key = JSON.stringify(definition)
      const known = this.#since.get(key) ?? (isFirst ? this.#startedAt - BEFORE_START_MS : this.#now())
      since.set(key, known)
      const assets = definition.select == null ? undefined : new Set(selectedAssets(graph, definition.select))
      return ruleOf(definition, { assets, since: known })
    })
    this.#definitions = definitions
    this.#rules = rules
    this.#since = since
  }

  get all(): readonly AlertDefinition[] {
    return this.#definitions
  }

  readonly rules = (): readonly AlertRule[] => this.#rules

  target(name: string): AlertDefinition | undefined {
    return this.#definitions.find((each) => each.name === name)
  }
}
