import type { LogPage } from '../../api/detail/detail-contract.ts'
import type {
  AcceptedRun,
  LeftOut,
  LogQuery,
  NewRunBody,
  Only,
  PreviewBody,
  RerunBody,
  RunEvent,
  RunLogEntry,
  RunPreview,
  RunsApi,
} from '../../api/run-contract.ts'
import { reasonNames } from '../../domain/partitions/status-names.ts'
import { planRun } from '../../domain/planning/plan.ts'
import { type RerunMode, rerunSelection, workFor } from '../../domain/planning/rerun.ts'
import { type KeyedRequest, requestByKey } from '../../domain/runs/again.ts'
import { RunCancelRequested } from '../../domain/runs/run-cancel-requested.event.ts'
import { requestFingerprint, type TenantSecret } from '../../domain/runs/run-ids.ts'
import { runKeyIndex } from '../../domain/runs/run-key-index.table.ts'
import { isRunOver } from '../../domain/runs/runs.table.ts'
import { plainKey } from '../../domain/selection/parser.ts'
import { knownAsset } from '../../domain/selection/selected-assets.ts'
import { Paths } from '../../engine/paths.ts'
import { assert } from '../../lib/assert.ts'
import { ServoError } from '../../lib/error.ts'
import type { Envelope } from '../../model/envelope.ts'
import { newEvent } from '../../model/event.ts'
import { runsOfKeys } from '../leader/runs-of-keys.ts'
import { previewGroups } from './choice/preview-groups.ts'
import { chooseRun, type RunChoice } from './choice/run-choice.ts'
import { type Knowledge, lookup } from './knowledge.ts'
import { type NewRun, runRequested } from './requests.ts'
import { RunReader } from './run-reader.ts'
import { type Live, runEvents, storedLogPage, storedLogs } from './run-stream.ts'
import type { Statuses } from './status/statuses.ts'

export interface RunsOptions {
  /** Makes the ids of runs. */
  readonly runIds: () => TenantSecret
  readonly statuses: Statuses
  /** Absent in a process that only reads. */
  readonly live?: Live | undefined
}

/** Answers questions about runs, and takes requests for them. */
export class Runs extends RunReader implements RunsApi {
  readonly #known: Knowledge
  readonly #options: RunsOptions

  constructor(known: Knowledge, options: RunsOptions) {
    super(known)
    this.#known = known
    this.#options = options
  }

  async request(body: NewRunBody, user: string, traceparent?: string): Promise<AcceptedRun> {
    const { select: selection = ['*'], partitions, only, key, labels, priority } = body
    const asked = { asset_selection: selection, partition_selection: partitions ?? null, labels: labels ?? {} }
    const request_fingerprint = requestFingerprint({ ...asked, only })
    const request_id = key ?? body.request_id ?? this.#known.mintId()
    const source = { type: 'manual', user_id: user, request_id } as const
    const named =
      key === undefined
        ? { run_key: `manual:${request_id}`, source }
        : await this.#byKey({ run_key: `user:${key}`, request_fingerprint, source })
    // A request that is repeated gets its run, whatever it would mean by now.
    const isNew = key === undefined && body.request_id === undefined
    const before = isNew ? undefined : await lookup(this.#known, runKeyIndex, named.run_key)
    const isRepeated = before?.request_fingerprint === request_fingerprint
    const { work, left_out, sole } = isRepeated ? REPEATED : await this.#choose(body)
    if (!isRepeated && work === undefined) throw new ServoError('conflict', 'nothing_to_do', nothingToDo(only, sole))
    return await this.#submit(
      {
        ...asked,
        ...work,
        request_fingerprint,
        ...named,
        actor: user,
        traceparent,
        ...(priority !== undefined && { priority }),
      },
      left_out,
    )
  }

  async preview(body: PreviewBody): Promise<RunPreview> {
    const { work, chosen, left_out, sole } = await this.#choose(body)
    if (work === undefined) return { tasks: [], groups: [], left_out, nothing_to_do: nothingToDo(body.only, sole) }
    const { graph, version } = this.#known.graph.get()
    const partitions = this.#known.graph.partitions()
    const plan = planRun({ run: { ...work, run_id: '', priority: 0 }, graph, graphVersion: version, partitions })
    if ('error' in plan) throw new ServoError('invalid', 'bad_selection', plan.error)
    const reasons = await this.#options.statuses.reasons(chosen.partitions)
    const found = plan.events
      .flatMap((part) => part.tasks)
      .map((task) => {
        const { task_key, partition_key = null, partition_keys } = task
        const asset_key = task.asset_key ?? task_key
        const keys = partition_keys ?? [partition_key ?? '']
        const ofTask = keys.flatMap((key) => reasons.get(asset_key)?.get(key) ?? [])
        return { keys, task_key, asset_key, partition_key, reasons: reasonNames.filter((reason) => ofTask.includes(reason)) }
      })
    const groups = previewGroups(found, partitions)
    return { tasks: found.map(({ keys: _, ...task }) => task), groups, left_out, nothing_to_do: null }
  }

  #choose(body: PreviewBody): Promise<RunChoice> {
    return chooseRun(this.#known, this.#options.statuses, body)
  }

  /** Requests that a run stop. A second request changes nothing. */
  async cancel(
    idOrStart: string,
    user: string,
    reason: string | undefined,
  ): Promise<{ run_id: string; accepted_event_id: string }> {
    const { run_id, state } = (await this.get(idOrStart)).run
    if (isRunOver(state)) throw runOver(run_id, state)
    const event = newEvent(
      RunCancelRequested,
      { run_id, requested_by: user, reason: reason ?? null },
      { correlation_id: run_id, actor: user },
    )
    const { events, verdicts } = await this.#known.submit([event])
    // The run may have ended since it was read. Only the fold knows which came first.
    if (verdicts[0]?.kind === 'ignored') throw runOver(run_id, (await this.get(run_id)).run.state)
    return { run_id, accepted_event_id: idOfFirst(events) }
  }

  /** Runs the failed tasks of an earlier run again, or all of them, or a part. */
  async rerun(idOrStart: string, body: RerunBody, user: string, traceparent?: string): Promise<AcceptedRun> {
    const { mode, select: selection, key } = body
    const { run, tasks } = await this.get(idOrStart)
    const { run_id } = run
    if (!isRunOver(run.state)) {
      throw new ServoError('conflict', 'run_not_over', `${run_id} has not ended yet`, {
        hint: `Wait for it, or cancel it first: servo runs cancel ${run_id}`,
      })
    }
    const pairs = rerunSelection(tasks, this.#mode(mode, selection))
    if (pairs.length === 0) {
      if (mode === 'subset')
        throw new ServoError('invalid', 'nothing_to_rerun', `${run_id} has no task that ${selection} selects`, {
          hint: `\`servo runs show ${run_id}\` lists its tasks.`,
        })
      throw new ServoError('invalid', 'nothing_to_rerun', `nothing in ${run_id} needs to run again`, {
        hint:
          mode === 'from_failure' ? 'Every task succeeded. Use --all to run everything again.' : 'It has no tasks of assets.',
      })
    }
    const request_id = key ?? body.request_id ?? this.#known.mintId()
    return await this.#submit({
      run_key: `rerun:${run_id}:${request_id}`,
      ...workFor(pairs),
      labels: run.labels,
      source: { type: 'rerun', run_id, request_id, mode },
      priority: run.priority,
      actor: user,
      traceparent,
    })
  }

  /** The request as it is, or as the rerun of the run that its key made and that failed. */
  async #byKey(request: KeyedRequest): Promise<Pick<KeyedRequest, 'run_key' | 'source'>> {
    const { run_key, source } = requestByKey(request, await runsOfKeys(this.#known, [request.run_key]))
    return { run_key, source }
  }

  async *logs(idOrStart: string, query: LogQuery): AsyncGenerator<RunLogEntry> {
    const { store, scope } = this.#known
    const { live } = this.#options
    if (live !== undefined) await live.logs.stored(await this.resolve(idOrStart))
    yield* storedLogs(this, store, new Paths(scope), idOrStart, query)
  }

  async logPage(idOrStart: string, query: LogQuery & { limit: number; cursor?: string | undefined }): Promise<LogPage> {
    const { store, scope } = this.#known
    const { live } = this.#options
    if (live !== undefined) await live.logs.stored(await this.resolve(idOrStart))
    return await storedLogPage(this, store, new Paths(scope), idOrStart, query)
  }

  follow(idOrStart: string, signal: AbortSignal): AsyncIterable<RunEvent> {
    return runEvents(this, this.#options.live, idOrStart, signal)
  }

  #mode(mode: RerunBody['mode'], selection: string | undefined): RerunMode {
    if (mode !== 'subset') return { mode }
    if (selection === undefined || selection === '') {
      throw new ServoError('invalid', 'selection_missing', 'a partial rerun needs a selection', {
        hint: 'e.g. --select "mart/revenue+"',
      })
    }
    const { graph } = this.#known.graph.get()
    const key = plainKey(selection)
    if (key !== undefined) knownAsset(graph, key)
    return { mode, selection, graph }
  }

  async #submit(request: NewRun, left_out: readonly LeftOut[] = []): Promise<AcceptedRun> {
    const { run_id: derived, event } = runRequested(this.#known.scope, this.#options.runIds(), request)
    const { events, verdicts } = await this.#known.submit([event])
    const [verdict] = verdicts
    const created = verdict?.kind === 'applied'
    const run_id = created ? derived : await this.#madeBy(request.run_key, derived)
    if (verdict?.kind === 'ignored' && verdict.reason === 'run_key_conflict') {
      // A key names the work, and belongs to whoever chose it. The id of a request names the request alone.
      const code = request.run_key.startsWith('user:') ? 'run_key_conflict' : 'idempotency_key_reused'
      throw new ServoError('conflict', code, `another request used this key and created ${run_id}`, {
        hint: 'Use a new key, or repeat the first request unchanged.',
        facts: { run_id },
      })
    }
    const rerun_of = request.source.type === 'rerun' ? request.source.run_id : null
    return { run_id, accepted_event_id: idOfFirst(events), created, rerun_of, left_out }
  }

  /** The run of a key that was used before. An earlier secret may have made its id. */
  async #madeBy(runKey: string, otherwise: string): Promise<string> {
    const known = await lookup(this.#known, runKeyIndex, runKey)
    return known?.run_id ?? otherwise
  }
}

const REPEATED = { work: undefined, left_out: [], sole: undefined }

/** Of one task by its name: `hello is not stale`. Of several: `nothing selected is stale or missing`. */
function nothingToDo(only: readonly Only[] = [], sole: string | undefined): string {
  const is = only.filter((one) => one !== 'failed').join(' or ')
  const [stale, failed] = sole === undefined ? [`is ${is}`, 'has failed'] : [`is not ${is}`, 'has not failed']
  const words = [...(is === '' ? [] : [stale]), ...(only.includes('failed') ? [failed] : [])]
  return `nothing to do: ${sole ?? 'nothing selected'} ${words.join(sole === undefined ? ' or ' : ' and ')}`
}

const runOver = (runId: string, state: string): ServoError =>
  new ServoError('conflict', 'run_over', `${runId} has already ended: ${state.toLowerCase()}`, {
    hint: 'There is nothing to cancel.',
  })

function idOfFirst([event]: readonly Envelope[]): string {
  assert(event !== undefined, 'what was submitted was not written')
  return event.event_id
}
