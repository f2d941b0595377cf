import { chooseWork } from '../../domain/planning/plan-choice.ts'
import { rerunSelection, workFor } from '../../domain/planning/rerun.ts'
import type { TenantSecret } from '../../domain/runs/identity.ts'
import { RunCancelRequested } from '../../domain/runs/run-cancel-requested.event.ts'
import { runKeyIndex } from '../../domain/runs/run-key-index.table.ts'
import { isRunOver, type RunState } from '../../domain/runs/runs.table.ts'
import type { TaskRow } from '../../domain/tasks/tasks.table.ts'
import type { Scope } from '../../engine/paths.ts'
import { ServoError } from '../../lib/error.ts'
import { newEvent } from '../../model/event.ts'
import { type Knowledge, lookup } from './knowledge.ts'
import { type RunRequest, runRequested } from './requests.ts'
import type { RunReader } from './run-reader.ts'

export interface RunsOptions {
  readonly known: Pick<Knowledge, 'graph' | 'coldRows' | 'submit'>
  readonly reader: RunReader
  readonly scope: Scope
  readonly secret: () => TenantSecret
  /** A new id for a request that has no key of its own. */
  readonly mintId: () => string
}

export interface NewRun {
  readonly selection: readonly string[]
  readonly partitions?: readonly string[] | undefined
  /** Names the request: the same key asked for again is the same run. */
  readonly key?: string | undefined
  readonly request_id?: string | undefined
  readonly labels?: Readonly<Record<string, string>> | undefined
  readonly priority?: number | undefined
  readonly user: string
  readonly traceparent?: string | undefined
}

export interface Accepted {
  readonly run_id: string
  readonly accepted_event_id: string
  /** False when the same request had been made before. */
  readonly created: boolean
}

export interface Rerun {
  readonly mode: 'from_failure' | 'all' | 'subset'
  readonly selection?: string | undefined
  readonly key?: string | undefined
  readonly request_id?: string | undefined
  readonly user: string
  readonly traceparent?: string | undefined
}

/** What people and programs ask of runs. */
export class Runs {
  readonly #options: RunsOptions

  constructor(options: RunsOptions) {
    this.#options = options
  }

  async request(run: NewRun): Promise<Accepted> {
    const { selection, partitions, key, labels, priority, user, traceparent } = run
    const asked = { asset_selection: selection, partition_selection: partitions ?? null }
    const { graph } = this.#options.known
    const chosen = chooseWork(asked, graph.get().graph, graph.partitions())
    // A run that can make nothing would only be a failure to read about later; here somebody is listening.
    if ('error' in chosen) throw new ServoError('invalid', 'bad_selection', chosen.error)
    const request_id = key ?? run.request_id ?? this.#options.mintId()
    return await this.#submit({
      run_key: key === undefined ? `manual:${request_id}` : `user:${key}`,
      ...asked,
      labels: labels ?? {},
      source: { type: 'manual', user_id: user, request_id },
      actor: user,
      traceparent,
      ...(priority !== undefined && { priority }),
    })
  }

  /** Asks a run to stop. Asking twice is asking once. */
  async cancel(idOrStart: string, user: string, reason?: string): Promise<{ run_id: string; accepted_event_id: string }> {
    const { run } = await this.#options.reader.get(idOrStart)
    const run_id = String(run['run_id'])
    if (isRunOver(run['state'] as RunState)) {
      throw new ServoError('conflict', 'run_over', `${run_id} is over: ${String(run['state']).toLowerCase()}`, {
        hint: 'There is nothing left to cancel.',
      })
    }
    const event = newEvent(
      RunCancelRequested,
      { run_id, requested_by: user, reason: reason ?? null },
      { correlation_id: run_id, actor: user },
    )
    const { events } = await this.#options.known.submit([event])
    return { run_id, accepted_event_id: events[0]?.event_id as string }
  }

  /** Makes again what an earlier run did not, or all of it, or a part. */
  async rerun(idOrStart: string, { mode, selection, key, request_id: given, user, traceparent }: Rerun): Promise<Accepted> {
    const { run, tasks } = await this.#options.reader.get(idOrStart)
    const run_id = String(run['run_id'])
    if (!isRunOver(run['state'] as RunState)) {
      throw new ServoError('conflict', 'run_not_over', `${run_id} has not ended yet`, {
        hint: `Wait for it, or cancel it first: servo runs cancel ${run_id}`,
      })
    }
    const pairs = rerunSelection(tasks as unknown as TaskRow[], this.#mode(mode, selection))
    if (pairs.length === 0) {
      throw new ServoError('invalid', 'nothing_to_rerun', `nothing of ${run_id} is to be run again`, {
        hint: mode === 'from_failure' ? 'All of it succeeded; use --all to run everything again.' : 'Check the selection.',
      })
    }
    const request_id = key ?? given ?? this.#options.mintId()
    return await this.#submit({
      run_key: `rerun:${run_id}:${request_id}`,
      ...workFor(pairs),
      labels: (run['labels'] ?? {}) as Record<string, string>,
      source: { type: 'rerun', run_id, request_id, mode },
      priority: Number(run['priority'] ?? 0),
      actor: user,
      traceparent,
    })
  }

  #mode(mode: Rerun['mode'], selection: string | undefined) {
    if (mode !== 'subset') return { mode }
    if (selection === undefined || selection === '') {
      throw new ServoError('invalid', 'selection_missing', 'a subset needs a selection', {
        hint: 'e.g. --select "mart/revenue+"',
      })
    }
    return { mode, selection, graph: this.#options.known.graph.get().graph }
  }

  async #submit(request: RunRequest): Promise<Accepted> {
    const { known, scope, secret } = this.#options
    const { run_id: derived, event } = runRequested(scope, secret(), request)
    const { events, verdicts } = await known.submit([event])
    const [verdict] = verdicts
    const created = verdict?.kind === 'applied'
    const run_id = created ? derived : await this.#madeBy(request.run_key, derived)
    if (verdict?.kind === 'ignored' && verdict.reason === 'run_key_conflict') {
      throw new ServoError(
        'conflict',
        'run_key_conflict',
        `the key of this request was used for another one, which made ${run_id}`,
        {
          hint: 'Use a new key, or repeat the first request exactly.',
          facts: { run_id },
        },
      )
    }
    return { run_id, accepted_event_id: events[0]?.event_id as string, created }
  }

  /** The run of a key that was used before. Its id may have been derived with another secret than the one we have now. */
  async #madeBy(runKey: string, otherwise: string): Promise<string> {
    const known = await lookup(this.#options.known, runKeyIndex, runKey)
    return known?.run_id ?? otherwise
  }
}
