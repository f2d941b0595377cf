import type { Controller, Decision, Observed } from '../../model/controller.ts'
import { type NewEvent, newEvent } from '../../model/event.ts'
import type { Rows } from '../../model/rows.ts'
import { packSpans } from '../../partitions/spans.ts'
import { assetDefinitions } from '../assets/asset-definitions.table.ts'
import { graphOf, type RecordedGraph } from '../assets/definitions.ts'
import type { GraphPartitions } from '../assets/graph-partitions.ts'
import { automationState, isPaused } from '../automation/automation-state.table.ts'
import type { RequestRun } from '../automation/request-run.ts'
import { RunCancelRequested } from '../runs/run-cancel-requested.event.ts'
import { isRunOver, runs } from '../runs/runs.table.ts'
import { isRowOf } from '../typed-rows.ts'
import { backfillAssets } from './backfill-assets.table.ts'
import { BackfillChunkPlanned } from './backfill-chunk-planned.event.ts'
import { BackfillStateChanged } from './backfill-state-changed.event.ts'
import {
  type BackfillRow,
  type BackfillState,
  backfills,
  hasFailedTooOften,
  hasSucceeded,
  isBackfillOver,
} from './backfills.table.ts'
import { type ChunkNeeds, leftOutOf, needsActive, needsOfChunk, selectionOfChunk } from './chunk-work.ts'
import { partitionsOfBackfill } from './frozen-set.ts'
import { whatChanged } from './what-changed.ts'

export interface BackfillControllerOptions {
  readonly requestRun: RequestRun
  /** While it says no, nothing is planned. A cancellation is carried out all the same. */
  readonly mayDecide?: () => boolean
  /** False where automation is turned off: chunks are planned elsewhere, or later. */
  readonly automation?: boolean
}

/**
 * Carries backfills through: it plans the next chunk whenever there is room for its run and all that it needs has ended, and ends the
 * backfill after its last chunk. Everything follows from the rows: what was decided before a crash is on record, the rest is decided again.
 */
export function backfillController(options: BackfillControllerOptions): Controller {
  const { requestRun, mayDecide = () => true, automation = true } = options
  const changed = new Set<string>()
  /** What the next chunk of a backfill needs; worked out once, however often it has to wait. */
  const next = new Map<string, ChunkNeeds>()
  const moments = new Map<string, GraphPartitions>()
  /** Those that have chunks to plan, but automation is paused. */
  const held = new Set<string>()
  /** Why a backfill cannot go on by the graph at hand. */
  const checked = new Map<string, string | undefined>()
  let graph: RecordedGraph | undefined

  const forget = (id: string): void => {
    next.delete(id)
    moments.delete(id)
    checked.delete(id)
    held.delete(id)
  }

  const partitionsOf = (rows: Rows, backfill: Readonly<BackfillRow>, { mappings }: RecordedGraph): GraphPartitions => {
    const known = moments.get(backfill.backfill_id)
    if (known !== undefined) return known
    const made = partitionsOfBackfill(rows, backfill, mappings)
    moments.set(backfill.backfill_id, made)
    return made
  }

  const plan = (rows: Rows, backfill: Readonly<BackfillRow>, recorded: RecordedGraph): readonly NewEvent[] | undefined => {
    const { backfill_id, planned_chunks: chunk_index, state_version, priority, row_version } = backfill
    const partitions = partitionsOf(rows, backfill, recorded)
    let needs = next.get(backfill_id)
    if (needs?.chunk_index !== chunk_index) {
      needs = needsOfChunk(rows, backfill, chunk_index, partitions)
      next.set(backfill_id, needs)
    }
    if (needsActive(rows, backfill, needs)) return undefined
    const leftOut = leftOutOf(rows, backfill, needs)
    const [skipped, overlapped] = [leftOut.skipped, leftOut.overlapped].map((some) =>
      [...some].map(([asset_key, positions]) => ({ asset_key, positions: packSpans(positions) })),
    )
    const asset_selection = selectionOfChunk(needs, leftOut, partitions)
    const place = {
      backfill_id,
      chunk_index,
      state_version,
      ...(skipped?.length && { skipped }),
      ...(overlapped?.length && { overlapped }),
    }
    const because = { correlation_id: backfill_id, causation_id: row_version }
    if (asset_selection.length === 0) return [newEvent(BackfillChunkPlanned, place, because)]
    const run_key = `backfill:${backfill_id}:chunk:${chunk_index}`
    const { run_id, request_fingerprint, event } = requestRun({
      run_key,
      asset_selection,
      partition_selection: null,
      labels: {},
      priority,
      source: { type: 'backfill', backfill_id, chunk_id: `${backfill_id}:${chunk_index}`, chunk_index },
      causation_id: row_version,
    })
    const run = { run_key, run_id, request_fingerprint }
    return [newEvent(BackfillChunkPlanned, { ...place, run }, because), event]
  }

  /** What follows for a backfill now. Once that is folded, its row has changed, and the controller is asked again. */
  const follows = (rows: Rows, backfill: Readonly<BackfillRow>): Decision | undefined => {
    const { state, planned_chunks, total_chunks, active_chunks, max_concurrent_runs } = backfill
    if (state === 'PENDING') return moved(backfill, 'RUNNING')
    if (state !== 'RUNNING') return undefined
    if (planned_chunks === total_chunks || hasFailedTooOften(backfill)) {
      if (active_chunks.length > 0) return undefined
      return moved(backfill, hasSucceeded(backfill) ? 'SUCCEEDED' : 'FAILED')
    }
    if (active_chunks.length >= max_concurrent_runs) return undefined
    if (!automation || isPaused(rows)) {
      held.add(backfill.backfill_id)
      return undefined
    }
    graph ??= graphOf(rows.hot(assetDefinitions).all())
    if (!checked.has(backfill.backfill_id))
      checked.set(backfill.backfill_id, whatChanged(backfill, rows.hot(backfillAssets).under(backfill.backfill_id), graph))
    const reason = checked.get(backfill.backfill_id)
    return reason === undefined ? plan(rows, backfill, graph) : moved(backfill, 'PAUSED', reason)
  }

  return {
    name: 'backfill',
    doc: 'Plans the chunks of backfills, and asks for their runs.',
    watches: [backfills, assetDefinitions, automationState],
    observe: (table, row) => {
      if (table === assetDefinitions) {
        graph = undefined
        next.clear()
        moments.clear()
        checked.clear()
      } else if (table === automationState) {
        for (const id of held) changed.add(id)
        held.clear()
      } else if (isRowOf(backfills, table, row)) changed.add(row.backfill_id)
    },
    decide({ rows }: Observed): readonly Decision[] {
      const decided: Decision[] = []
      for (const id of changed) {
        const backfill = rows.hot(backfills).get(id)
        if (backfill === undefined || isBackfillOver(backfill.state)) {
          changed.delete(id)
          forget(id)
        } else if (backfill.cancel_requested_at !== null) {
          changed.delete(id)
          decided.push(...cancelled(rows, backfill))
        } else if (mayDecide()) {
          changed.delete(id)
          const found = follows(rows, backfill)
          if (found !== undefined) decided.push(found)
        }
      }
      return decided
    },
  }
}

function moved(backfill: Readonly<BackfillRow>, to_state: BackfillState, reason?: string): NewEvent {
  const { backfill_id, state: from_state, state_version, planned_chunks, row_version } = backfill
  const change = { backfill_id, from_state, to_state, state_version: state_version + 1 }
  return newEvent(
    BackfillStateChanged,
    { ...change, ...(isBackfillOver(to_state) && { planned_chunks }), ...(reason !== undefined && { reason }) },
    { correlation_id: backfill_id, causation_id: row_version },
  )
}

/** Runs that have not begun are cancelled, and others if that was asked for. Without any, the backfill is cancelled. */
function cancelled(rows: Rows, backfill: Readonly<BackfillRow>): Decision[] {
  const { active_chunks, cancel_runs, cancel_requested_by, cancel_reason, backfill_id, row_version } = backfill
  if (active_chunks.length === 0) return [moved(backfill, 'CANCELLED')]
  return active_chunks.flatMap(({ run_id }) => {
    const run = rows.hot(runs).get(run_id)
    if (run === undefined || isRunOver(run.state) || run.cancel_requested_at !== null) return []
    if (!cancel_runs && run.state !== 'PENDING') return []
    const reason = cancel_reason ?? `the backfill ${backfill_id} was cancelled`
    return [
      newEvent(
        RunCancelRequested,
        { run_id, requested_by: cancel_requested_by ?? 'servo', reason },
        { correlation_id: run_id, causation_id: row_version },
      ),
    ]
  })
}
