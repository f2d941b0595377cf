import type { AlertDefinition } from '../../../contract/alert.ts'
import type { ProjectManifest } from '../../../contract/project-manifest.ts'
import type { AlertRule } from '../../../domain/alerts/alert-rule.ts'
import { AssetGraph } from '../../../domain/assets/graph.ts'
import type { Reactor } from '../../../engine/loop/reactions.ts'
import type { NewEvent } from '../../../model/event.ts'
import type { AlarmClock } from '../../../ports/clock.ts'
import type { CurrentGraph } from '../current-graph.ts'
import type { KnownRows } from '../known-rows.ts'
import { missingFor } from './alert-message.ts'
import { AlertRules } from './alert-rules.ts'
import { AlertSender, type AlertSenderOptions } from './alert-sender.ts'
import type { Send } from './outgoing.ts'
import { StaleWatch } from './stale-watch.ts'

interface Known extends Pick<KnownRows, 'rows'> {
  readonly graph: CurrentGraph
  submit(events: readonly NewEvent[]): Promise<unknown>
}

export interface AlertingOptions extends Pick<AlertSenderOptions, 'environment' | 'checkLeads' | 'onTried' | 'onTrouble'> {
  readonly clock: AlarmClock
  /** The rows of the leader, and its way to write. */
  readonly known: () => Known
  /** Over HTTP if absent. */
  readonly send?: Send
  /** How many partitions of each of these assets are older than its freshness policy allows. */
  readonly overdue: (assets: readonly string[]) => Promise<ReadonlyMap<string, number>>
}

/** The alerts of a project: by which rules they are raised, and how they are sent. */
export class Alerting {
  readonly #options: AlertingOptions
  readonly #rules: AlertRules
  readonly #sender: AlertSender
  readonly #stale: StaleWatch
  #project = ''

  constructor(options: AlertingOptions) {
    this.#options = options
    const { clock, known, overdue, send = sendLazily } = options
    this.#rules = new AlertRules(() => clock.now())
    const shared = {
      ...options,
      rows: () => known().rows(),
      submit: (events: readonly NewEvent[]) => known().submit(events),
    }
    this.#sender = new AlertSender({
      ...shared,
      send,
      target: (name) => this.#rules.target(name),
      project: () => this.#project,
    })
    this.#stale = new StaleWatch({ ...shared, rules: this.rules, graph: () => known().graph.get().graph, overdue })
  }

  readonly rules = (): readonly AlertRule[] => this.#rules.rules()

  get reactors(): readonly Reactor[] {
    return this.#sender.reactors
  }

  /** Throws if a selection of an alert cannot be read. */
  use({ project, alerts, assets }: ProjectManifest): void {
    this.#project = project
    this.#rules.use(alerts, new AssetGraph(assets))
  }

  /** The project is on record. */
  projectKnown(): void {
    this.#sender.projectKnown()
    this.#stale.projectKnown()
  }

  /** The alerts of the config, and what each lacks. */
  targets(): { definition: AlertDefinition; problem: string | undefined }[] {
    const { environment } = this.#options
    return this.#rules.all.map((definition) => ({ definition, problem: missingFor(definition, environment) }))
  }

  stop(): void {
    this.#sender.stop()
    this.#stale.stop()
  }
}

/** Loaded with the first alert: most servers send none for days. */
const sendLazily: Send = async (outgoing) => (await import('./outgoing.ts')).sendOutgoing(outgoing)
