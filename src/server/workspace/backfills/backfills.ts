import type {
  AcceptedBackfill,
  BackfillCancelBody,
  BackfillChangesBody,
  BackfillPreview,
  BackfillPreviewBody,
  BackfillRetryBody,
  BackfillSwitchBody,
  BackfillsApi,
  CreatedBackfill,
  NewBackfillBody,
} from '../../../api/automation/backfill-contract.ts'
import { BackfillCancelRequested } from '../../../domain/backfills/backfill-cancel-requested.event.ts'
import { BackfillCreated, MAX_LEFT_OUT, type NewBackfill } from '../../../domain/backfills/backfill-created.event.ts'
import { backfillRequests, requestKey } from '../../../domain/backfills/backfill-requests.table.ts'
import { BackfillSettingsChanged } from '../../../domain/backfills/backfill-settings-changed.event.ts'
import { BackfillStateChanged } from '../../../domain/backfills/backfill-state-changed.event.ts'
import { type BackfillRow, isBackfillOver } from '../../../domain/backfills/backfills.table.ts'
import { whatChanged } from '../../../domain/backfills/what-changed.ts'
import { assert } from '../../../lib/assert.ts'
import { ServoError } from '../../../lib/error.ts'
import { sha256 } from '../../../lib/hash.ts'
import { canonicalJson } from '../../../lib/json.ts'
import { Mutex } from '../../../lib/mutex.ts'
import { toIso } from '../../../lib/time.ts'
import { withoutUndefined } from '../../../lib/without-undefined.ts'
import { newEvent } from '../../../model/event.ts'
import { type Knowledge, lookup } from '../knowledge.ts'
import { checkStateVersion, refusedTransition } from '../state-version.ts'
import type { Statuses } from '../status/statuses.ts'
import { type SettledBackfill, settle, settleRetry } from './asked-backfill.ts'
import { DEFAULT_CONCURRENCY, nothingToDo, previewOf } from './backfill-preview.ts'
import { BackfillReader, shownState } from './backfill-reader.ts'
import { inputsMissing } from './missing-inputs.ts'

/** Whatever somebody asks for by hand goes first: that has 0 unless it says otherwise. */
const DEFAULT_PRIORITY = -100

interface NewRequest {
  readonly request_id: string | undefined
  /** What was asked for, as it was said. */
  readonly said: object
  readonly user: string
  readonly parent?: string
  readonly settled: () => Promise<SettledBackfill> | SettledBackfill
  readonly rest: Pick<NewBackfill, 'partition_selector' | 'max_concurrent_runs' | 'priority'> & Partial<NewBackfill>
}

/** Everything that can be asked of backfills, as routes and commands ask it. */
export class Backfills extends BackfillReader implements BackfillsApi {
  readonly #known: Knowledge
  readonly #statuses: Statuses
  /** Of two changes at the same time, the second is checked against what the first has made. */
  readonly #turns = new Mutex()

  constructor(known: Knowledge, statuses: Statuses, isOn?: boolean) {
    super(known, isOn)
    this.#known = known
    this.#statuses = statuses
  }

  async preview(body: BackfillPreviewBody): Promise<BackfillPreview> {
    return await previewOf(this.#known, await settle(this.#known, this.#statuses, body), body)
  }

  create({ request_id, ...body }: NewBackfillBody, user: string): Promise<CreatedBackfill> {
    const { partitions, max_concurrent_runs, priority, stop_after_failures, newest_first, skip_existing } = body
    return this.#create({
      request_id,
      said: body,
      user,
      settled: async () => (await settle(this.#known, this.#statuses, body)).settled,
      rest: {
        partition_selector: partitions,
        max_concurrent_runs: max_concurrent_runs ?? DEFAULT_CONCURRENCY,
        priority: priority ?? DEFAULT_PRIORITY,
        ...withoutUndefined({ stop_after_failures, newest_first, skip_existing }),
      },
    })
  }

  async retryFailed(backfillId: string, { request_id, ...body }: BackfillRetryBody, user: string): Promise<CreatedBackfill> {
    const found = await this.find(backfillId)
    const { backfill } = found
    if (!isBackfillOver(backfill.state))
      throw new ServoError('conflict', 'backfill_not_over', `${backfillId} has not ended yet: ${words(backfill)}`, {
        hint: 'Wait for it, or cancel it first.',
      })
    return await this.#create({
      request_id,
      said: body,
      user,
      parent: backfill.backfill_id,
      settled: () => settleRetry(this.#known, found),
      rest: {
        partition_selector: { type: 'retry_failed' },
        max_concurrent_runs: body.max_concurrent_runs ?? backfill.max_concurrent_runs,
        priority: body.priority ?? backfill.priority,
        newest_first: backfill.newest_first,
        ...withoutUndefined({ stop_after_failures: body.stop_after_failures }),
      },
    })
  }

  pause(id: string, body: BackfillSwitchBody, user: string, expected?: number): Promise<AcceptedBackfill> {
    return this.#switch(id, 'PAUSED', { ...body, user, expected })
  }

  resume(id: string, body: BackfillSwitchBody, user: string, expected?: number): Promise<AcceptedBackfill> {
    return this.#switch(id, 'RUNNING', { ...body, user, expected })
  }

  async cancel(id: string, body: BackfillCancelBody, user: string, expected?: number): Promise<AcceptedBackfill> {
    return await this.#turns.run(async () => {
      const { backfill } = await this.find(id)
      const request = body.request_id ?? this.#known.mintId()
      const { cancel_runs = false, reason } = body
      // A second cancellation gets the first answer, also when the backfill is over by now, unless it asks for more.
      const asksMore = cancel_runs && !backfill.cancel_runs && !isBackfillOver(backfill.state)
      if (backfill.cancel_requested_at !== null && !asksMore) return cancelAnswer(backfill, cancel_runs, request)
      checkStateVersion(id, { expected, actual: backfill.state_version })
      if (isBackfillOver(backfill.state)) throw over(backfill, 'CANCELLED', 'There is nothing to cancel.')
      const event = newEvent(
        BackfillCancelRequested,
        { backfill_id: id, requested_by: user, cancel_runs, ...withoutUndefined({ reason }) },
        { actor: user, correlation_id: request },
      )
      const { verdicts } = await this.#known.submit([event])
      const now = (await this.find(id)).backfill
      if (verdicts[0]?.kind === 'ignored') throw over(now, 'CANCELLED', 'There is nothing to cancel.')
      return cancelAnswer(now, cancel_runs, request)
    })
  }

  /** Changes how it goes on. Runs that are planned already keep their priority. */
  async update(id: string, body: BackfillChangesBody, user: string, expected?: number): Promise<AcceptedBackfill> {
    const message = 'backfill changed'
    const { request_id, ...changes } = body
    return await this.#turns.run(async () => {
      const { backfill } = await this.find(id)
      const request = request_id ?? this.#known.mintId()
      const before = backfill.change_requests.find((each) => each.request_id === request)
      if (before !== undefined) return accepted(backfill, { message, at: before.at, request, event_id: before.event_id })
      checkStateVersion(id, { expected, actual: backfill.state_version })
      if (isBackfillOver(backfill.state)) throw over(backfill, backfill.state, 'Create another, or retry what failed.')
      if (backfill.cancel_requested_at !== null) throw cancelling(backfill, backfill.state, 'changed')
      const { max_concurrent_runs, priority, stop_after_failures } = { ...backfill, ...withoutUndefined(changes) }
      const settings = { max_concurrent_runs, priority, stop_after_failures }
      const event = newEvent(
        BackfillSettingsChanged,
        {
          backfill_id: id,
          settings_version: (backfill.settings_version ?? 1) + 1,
          ...settings,
          changed_by: user,
          request_id: request,
        },
        { actor: user, correlation_id: request },
      )
      const { events, verdicts } = await this.#known.submit([event])
      const now = (await this.find(id)).backfill
      if (verdicts[0]?.kind === 'ignored') throw over(now, now.state, 'Look at it again.')
      return accepted(now, { message, at: this.#known.now(), request, event_id: events[0]?.event_id ?? null })
    })
  }

  async #switch(
    id: string,
    to_state: 'PAUSED' | 'RUNNING',
    { request_id, reason, user, expected }: BackfillSwitchBody & { user: string; expected: number | undefined },
  ): Promise<AcceptedBackfill> {
    const message = to_state === 'PAUSED' ? 'backfill paused' : 'backfill resumed'
    return await this.#turns.run(async () => {
      const { backfill, assets } = await this.find(id)
      const request = request_id ?? this.#known.mintId()
      const before = backfill.change_requests.find((one) => one.request_id === request_id)
      if (before !== undefined) return accepted(backfill, { message, at: before.at, request, event_id: before.event_id })
      checkStateVersion(id, { expected, actual: backfill.state_version })
      const { state: from_state } = backfill
      if (isBackfillOver(from_state)) throw over(backfill, to_state, 'Create another, or retry what failed.')
      if (backfill.cancel_requested_at !== null)
        throw cancelling(backfill, to_state, to_state === 'PAUSED' ? 'paused' : 'resumed')
      const isThere = to_state === 'PAUSED' ? from_state === 'PAUSED' : from_state !== 'PAUSED'
      const nothing = to_state === 'PAUSED' ? 'backfill is paused already' : 'backfill is not paused'
      if (isThere) return accepted(backfill, { message: nothing, at: this.#known.now(), request })
      const changed = to_state === 'RUNNING' ? whatChanged(backfill, assets, this.#known.graph.get()) : undefined
      if (changed !== undefined) throw cannotGoOn(backfill, changed)
      const change = { backfill_id: id, to_state, changed_by: user, request_id: request, ...withoutUndefined({ reason }) }
      // One that has not begun begins, and is paused at once.
      const begins = from_state === 'PENDING'
      const state_version = backfill.state_version + 1
      const begun = { backfill_id: id, from_state: 'PENDING', to_state: 'RUNNING', state_version } as const
      const events = [
        ...(begins ? [newEvent(BackfillStateChanged, begun)] : []),
        newEvent(
          BackfillStateChanged,
          { ...change, from_state: begins ? 'RUNNING' : from_state, state_version: begins ? state_version + 1 : state_version },
          { actor: user, correlation_id: request },
        ),
      ]
      const { events: made, verdicts } = await this.#known.submit(events)
      const now = (await this.find(id)).backfill
      if (verdicts.at(-1)?.kind !== 'applied') {
        checkStateVersion(id, { expected: backfill.state_version, actual: now.state_version })
        throw over(now, to_state, 'Look at it again.')
      }
      return accepted(now, { message, at: this.#known.now(), request, event_id: made.at(-1)?.event_id ?? null })
    })
  }

  async #create({ request_id, said, user, parent, settled, rest }: NewRequest): Promise<CreatedBackfill> {
    const request = request_id ?? this.#known.mintId()
    const request_fingerprint = sha256(canonicalJson({ ...said, parent: parent ?? null }))
    const madeBefore = () => this.#madeBy(request, parent, request_fingerprint)
    const before = request_id === undefined ? undefined : await madeBefore()
    if (before !== undefined) return before
    // The status of millions of partitions takes seconds, and nobody who pauses another backfill waits for that.
    const { left_out, missing_inputs, ...frozen } = await settled()
    return await this.#turns.run(async () => {
      const meanwhile = request_id === undefined ? undefined : await madeBefore()
      if (meanwhile !== undefined) return meanwhile
      if (missing_inputs.length > 0) throw inputsMissing(missing_inputs)
      const now = this.#known.now()
      if (frozen.stages.length === 0)
        return nothing(parent === undefined ? nothingToDo(left_out) : 'nothing to do: nothing failed', now, request, left_out)
      const backfill_id = `bf_${this.#known.mintId().toLowerCase()}`
      const payload: NewBackfill = {
        ...frozen,
        ...rest,
        backfill_id,
        client_request_id: request,
        request_fingerprint,
        created_by: user,
        ...(parent !== undefined && { parent_backfill_id: parent }),
        ...(left_out.length > 0 && { left_out: left_out.slice(0, MAX_LEFT_OUT) }),
      }
      const { events, verdicts } = await this.#known.submit([
        newEvent(BackfillCreated, payload, { actor: user, correlation_id: backfill_id }),
      ])
      if (verdicts[0]?.kind !== 'applied') {
        const made = await madeBefore()
        assert(made !== undefined, 'a backfill that was refused was made before')
        return made
      }
      return created((await this.find(backfill_id)).backfill, {
        message: 'backfill created',
        event_id: events[0]?.event_id ?? null,
        at: now,
        request,
        isNew: true,
      })
    })
  }

  /** The first answer to a request that is repeated. */
  async #madeBy(request: string, parent: string | undefined, fingerprint: string): Promise<CreatedBackfill | undefined> {
    const made = await lookup(this.#known, backfillRequests, requestKey(request, parent))
    if (made === undefined) return undefined
    if (made.request_fingerprint !== fingerprint)
      throw new ServoError('conflict', 'idempotency_key_reused', `another request used this id: ${made.backfill_id}`, {
        hint: 'Use a new id, or repeat the first request unchanged.',
        facts: { backfill_id: made.backfill_id },
      })
    const { backfill } = await this.find(made.backfill_id)
    const { created_event_id: event_id, created_at: at } = made
    return created(backfill, { message: 'backfill created', event_id, at, request, isNew: false })
  }
}

const words = (backfill: Readonly<BackfillRow>): string => shownState(backfill).toLowerCase().replaceAll('_', ' ')

const ended: Partial<Record<BackfillRow['state'], string>> = {
  SUCCEEDED: 'has succeeded',
  FAILED: 'has failed',
  CANCELLED: 'was cancelled',
}

const over = (backfill: Readonly<BackfillRow>, requested: string, hint: string): ServoError =>
  refusedTransition('backfill_over', `${backfill.backfill_id} ${ended[backfill.state] ?? `is ${words(backfill)}`}`, {
    current: backfill.state,
    requested,
    hint,
  })

const cancelling = (backfill: Readonly<BackfillRow>, requested: string, done: string): ServoError =>
  refusedTransition('backfill_over', `${backfill.backfill_id} is being cancelled and cannot be ${done}`, {
    current: backfill.state,
    requested,
    hint: 'Wait until its runs have ended, then create another for what is left.',
  })

/** It would pause again at once. */
function cannotGoOn({ backfill_id }: Readonly<BackfillRow>, changed: string): ServoError {
  const [why = changed, hint = 'cancel it and create another'] = changed.split('; ')
  return new ServoError('conflict', 'partitions_changed', `${backfill_id} cannot go on: ${why}`, {
    hint: `${hint.charAt(0).toUpperCase()}${hint.slice(1)}.`,
  })
}

interface Answer {
  readonly message: string
  readonly at: number
  readonly request: string
  readonly event_id?: string | null
}

const answer = ({ message, at, request, event_id = null }: Answer) => ({
  message,
  accepted_event_id: event_id,
  accepted_at: toIso(at),
  correlation_id: request,
})

const accepted = (backfill: Readonly<BackfillRow>, said: Answer): AcceptedBackfill => ({
  backfill_id: backfill.backfill_id,
  ...answer(said),
  state: shownState(backfill),
  state_version: backfill.state_version,
})

/** The answer of the first cancellation that asked for as much. */
function cancelAnswer(backfill: Readonly<BackfillRow>, withRuns: boolean, request: string): AcceptedBackfill {
  const all = backfill.cancel_requests ?? []
  const first = all.find(({ cancel_runs }) => cancel_runs || !withRuns) ?? all[0]
  const at = first?.at ?? backfill.cancel_requested_at ?? backfill.state_changed_at
  return accepted(backfill, { message: 'cancellation requested', at, request, event_id: first?.event_id ?? null })
}

const created = (backfill: Readonly<BackfillRow>, { isNew, ...said }: Answer & { isNew: boolean }): CreatedBackfill => ({
  backfill_id: backfill.backfill_id,
  ...answer(said),
  created: isNew,
  total_partitions: backfill.total_partitions,
  total_chunks: backfill.total_chunks,
  parent_backfill_id: backfill.parent_backfill_id,
  left_out: backfill.left_out ?? [],
})

const nothing = (message: string, at: number, request: string, left_out: CreatedBackfill['left_out']): CreatedBackfill => ({
  backfill_id: null,
  ...answer({ message, at, request }),
  created: false,
  total_partitions: 0,
  total_chunks: 0,
  parent_backfill_id: null,
  left_out,
})
