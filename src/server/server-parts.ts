import type { Evaluator } from '../contract/evaluation.ts'
import type { RequestRun } from '../domain/automation/request-run.ts'
import { scheduleTicks } from '../domain/schedules/schedule-ticks.table.ts'
import { checkLeads, leads } from '../engine/ledger/leading.ts'
import type { WorkspaceSecrets } from '../ports/secrets.ts'
import type { Reach } from './front-door.ts'
import { Alerting } from './leader/alerts/alerting.ts'
import type { Send } from './leader/alerts/outgoing.ts'
import { HeldWorkers } from './leader/dispatch/held-workers.ts'
import type { Post } from './leader/dispatch/push.ts'
import { evaluatedConditions } from './leader/evaluated-conditions.ts'
import { Feed } from './leader/feed.ts'
import { coldRowsOf, knownRows } from './leader/known-rows.ts'
import { maskedEvaluator } from './leader/masked-evaluator.ts'
import { Orchestrator } from './leader/orchestrator.ts'
import type { OrchestratorOptions } from './leader/orchestrator-options.ts'
import { ValueRetention } from './leader/retention/retention.ts'
import { SensorHub } from './leader/sensors/sensor-hub.ts'
import type { OrchestratorSettings } from './leader/settings.ts'
import { ServerMetrics } from './metrics/server-metrics.ts'
import type { Traces } from './traces/traces.ts'
import type { OpenTraces } from './traces/wanted.ts'
import { WatchedStore } from './watched-store.ts'
import { knowledgeOf } from './workspace/knowledge.ts'
import { runRequested } from './workspace/requests.ts'
import { RunReader } from './workspace/run-reader.ts'
import { overdueIn } from './workspace/workspace.ts'

export interface ServerOptions
  extends Pick<
    OrchestratorOptions,
    'components' | 'lease' | 'instance' | 'workers' | 'compaction' | 'onTrouble' | 'onStopped'
  > {
  readonly secrets: WorkspaceSecrets
  /** Called when a server wants to lead in place of this process. Absent for a server, which never gives way. */
  readonly onHandOver?: () => void
  /** True if schedules tick and sensors are evaluated here. */
  readonly automation?: boolean
  /** Evaluates the code of sensors and the conditions of schedules. Without one no sensor is evaluated, and ticks with a condition fail. */
  readonly evaluator?: Evaluator | undefined
  /** The number of attempts that may run here at a time. */
  readonly concurrency: () => number
  readonly settings?: () => OrchestratorSettings
  /** The environment of the process, in which the secrets of sensors are. */
  readonly environment?: Readonly<Record<string, string | undefined>>
  /** Where it is reached from; this machine alone if absent. */
  readonly reach?: Reach
  /** Pushes work to a queue; over HTTP if absent. */
  readonly post?: Post
  /** Sends alerts; over HTTP if absent. */
  readonly send?: Send
  /** Shows what is recorded to a collector of traces. Absent if nobody asked for that. */
  readonly openTraces?: OpenTraces | undefined
  /** What is counted here; the process may have added what it knows of itself. */
  readonly metrics?: ServerMetrics
}

/** What a server is made of. */
export interface ServerParts {
  readonly options: ServerOptions
  readonly watched: WatchedStore
  readonly orchestrator: Orchestrator
  readonly feed: Feed
  readonly workers: HeldWorkers
  readonly sensors: SensorHub | undefined
  readonly evaluator: Evaluator | undefined
  readonly retention: ValueRetention | undefined
  readonly metrics: ServerMetrics
  readonly traces: Traces | undefined
  readonly alerting: Alerting | undefined
}

/** Puts together a leader, everything that acts beside it, and everything that watches it. */
export async function openParts({ metrics = new ServerMetrics(), ...asked }: ServerOptions): Promise<ServerParts> {
  const watched = new WatchedStore(metrics.counting(asked.components.store), () => asked.components.clock.monotonic())
  const components = { ...asked.components, store: watched.store }
  const options = { ...asked, components }
  const { post, send, secrets, onHandOver, openTraces, automation = false, environment = {}, ...given } = options
  const rows = () => orchestrator.readable.state
  const evaluator = options.evaluator && maskedEvaluator(options.evaluator, { rows, environment })
  const workers = new HeldWorkers(options.workers, () => leads(options.lease))
  const feed: Feed = new Feed({
    rows: () => orchestrator.loop.compactor.state,
    durable: () => orchestrator.loop.durable(),
    recentTicks: () => coldRowsOf(orchestrator.loop.compactor, scheduleTicks).recent(),
    now: () => components.clock.now(),
  })
  const requestRun: RequestRun = (request) => runRequested(components.scope, secrets.run_ids, request)
  const sensors =
    evaluator &&
    new SensorHub({
      clock: components.clock,
      automation,
      evaluator,
      known: knownRows(() => orchestrator.readable),
      graph: () => orchestrator.graph,
      requestRun,
      mintId: components.ulid,
      submit: (events) => orchestrator.submit(events),
      durable: () => orchestrator.durable(),
      checkLeads: () => checkLeads(options.lease),
      onEvaluated: (evaluated) => {
        metrics.facts.evaluated(evaluated)
        feed.evaluated(evaluated)
      },
      onTrouble: (error) => options.onTrouble?.(error),
    })
  // A command that leads for a while removes nothing that it was not asked to remove.
  const retention =
    onHandOver === undefined
      ? new ValueRetention({
          clock: components.clock,
          known: () => knowledgeOf(components, orchestrator),
          checkLeads: () => checkLeads(options.lease),
          onTrouble: (error) => options.onTrouble?.(error),
          ...components.retentionTiming,
        })
      : undefined
  // A command that leads for a while tells nobody: its user is there.
  const alerting =
    onHandOver === undefined
      ? new Alerting({
          clock: components.clock,
          known: () => knowledgeOf(components, orchestrator),
          environment,
          checkLeads: () => checkLeads(options.lease),
          overdue: (assets) => overdueIn(knowledgeOf(components, orchestrator), assets),
          ...(send !== undefined && { send }),
          onTried: (status) => metrics.alertTried(status),
          onTrouble: (error) => options.onTrouble?.(error),
        })
      : undefined
  const traces = openTraces?.(() => orchestrator.loop.compactor.state)
  const reader = new RunReader(knownRows(() => orchestrator.readable))
  const orchestrator: Orchestrator = await Orchestrator.open({
    ...given,
    components,
    workers,
    carries: onHandOver === undefined ? 'everything' : 'what it is asked for',
    // A command that leads for a while does only what it was asked for.
    ...(onHandOver === undefined && { requestRun, automation }),
    conditions: evaluatedConditions({
      evaluator,
      mintId: components.ulid,
      onAnswer: () => orchestrator.loop.nudge(),
    }),
    measure: {
      ...metrics.measure,
      ...(traces && {
        onRecorded: (event, verdict, foldedAt) => {
          metrics.measure.onRecorded?.(event, verdict, foldedAt)
          traces.recorded.recorded(event, verdict, foldedAt)
        },
      }),
    },
    isSampled: traces?.isSampled,
    reactors: [
      ...metrics.facts.reactors,
      ...(traces?.recorded.reactors ?? []),
      ...feed.reactors,
      ...(sensors?.reactors ?? []),
      ...(retention?.reactors ?? []),
      ...(alerting?.reactors ?? []),
    ],
    alerts: alerting?.rules,
    onStopped: (error) => {
      sensors?.stop()
      retention?.stop()
      alerting?.stop()
      options.onStopped?.(error)
    },
    onOpened: (opened) => {
      metrics.facts.opened(opened.state)
      traces?.recorded.opened(opened.state)
      feed.opened(opened.state, coldRowsOf(opened, scheduleTicks).recent())
    },
    remote: { history: (attempt) => reader.endOf(attempt), ...(post !== undefined && { post }) },
  })
  return { options, watched, orchestrator, feed, workers, sensors, evaluator, retention, metrics, traces, alerting }
}
