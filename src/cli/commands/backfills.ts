import { setTimeout as sleep } from 'node:timers/promises'
import type {
  AcceptedBackfill,
  BackfillPreview,
  BackfillPreviewBody,
  CreatedBackfill,
  WireBackfill,
} from '../../api/automation/backfill-contract.ts'
import type { WorkspaceApi } from '../../api/workspace-contract.ts'
import { backfillStates } from '../../domain/backfills/backfills.table.ts'
import { counted } from '../../lib/text/counted.ts'
import { SECOND_MS } from '../../lib/time.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import { inputsInWords } from '../../server/workspace/backfills/missing-inputs.ts'
import { ask, tell } from '../ask-and-tell.ts'
import { alignRows, type Cell } from '../columns.ts'
import { badFlag, choiceOf, limitFlag, wholeNumber } from '../flags.ts'
import { colours, headsOf, note, print, printable, printJson, printTable } from '../output.ts'
import { currentUser, type ProjectFlags } from '../project.ts'
import { localTime } from '../show-run.ts'
import { LiveBlock } from '../watch/live-block.ts'
import { type PartitionFlags, selectorOf } from './backfills/selector-flags.ts'

export interface BackfillFlags extends ProjectFlags, PartitionFlags {
  chunkSize?: string
  concurrency?: string
  priority?: string
  stopAfterFailures?: string
  skipExisting?: boolean
  force?: boolean
  newestFirst?: boolean
  key?: string
  wait?: boolean
}

const number = (flag: string, text: string | undefined, min: number, max: number): number | undefined =>
  text === undefined ? undefined : wholeNumber(flag, text, { min, max })

/** How it goes on. */
const howOf = (flags: Pick<BackfillFlags, 'concurrency' | 'priority' | 'stopAfterFailures'>) => ({
  max_concurrent_runs: number('--concurrency', flags.concurrency, 1, 1_000),
  priority: number('--priority', flags.priority, -1_000, 1_000),
  stop_after_failures: number('--stop-after-failures', flags.stopAfterFailures, 1, 1_000_000),
})

/** What flags say of a backfill; what they do not name is left to the server. */
function bodyOf(assets: string[], flags: BackfillFlags): BackfillPreviewBody {
  const numbers = { chunk_size: number('--chunk-size', flags.chunkSize, 1, 10_000), ...howOf(flags) }
  return {
    assets,
    partitions: selectorOf(flags),
    ...withoutUndefined(numbers),
    ...withoutUndefined({ skip_existing: flags.skipExisting, newest_first: flags.newestFirst }),
  }
}

export async function previewBackfill(assets: string[], flags: BackfillFlags): Promise<void> {
  const body = bodyOf(assets, flags)
  const preview = await ask(flags, ({ backfills }) => backfills.preview(body), { ofNext: true })
  if (flags.json) printJson(preview)
  else showPreview(preview)
}

function showPreview(preview: BackfillPreview): void {
  const { assets, total_partitions, total_chunks, stages, first_chunk, left_out, missing_inputs, estimate_ms, nothing_to_do } =
    preview
  if (nothing_to_do !== null) {
    print(printable(nothing_to_do))
    return
  }
  print(`${sizeText(total_partitions, total_chunks)}${estimate_ms === null ? '' : `, about ${duration(estimate_ms)}`}`)
  const sizeOf = (key: string): number | undefined => stages.find((stage) => stage.assets.includes(key))?.chunk_size
  printTable(
    headsOf(['asset', 'partitions', 'chunk', 'from', 'to']),
    assets.map(({ asset_key, partitions, first, last }): Cell[] => [
      { text: printable(asset_key) },
      { text: String(partitions) },
      { text: String(sizeOf(asset_key) ?? '') },
      { text: printable(first ?? '') },
      { text: printable(last ?? '') },
    ]),
  )
  if (first_chunk !== null && first_chunk.keys.length > 0) print(`first: ${printable(first_chunk.keys.join(', '))}`)
  for (const { asset_key, partitions, why } of left_out)
    print(colours.dim(`left out: ${printable(asset_key)}, ${partitions} ${why}`))
  for (const missing of missing_inputs) print(colours.yellow(`cannot run: ${printable(inputsInWords(missing))}`))
}

const sizeText = (partitions: number, runs: number): string => `${counted(partitions, 'partition')} in ${counted(runs, 'run')}`

const duration = (ms: number): string => {
  const seconds = Math.round(ms / SECOND_MS)
  if (seconds < 90) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  return minutes < 90 ? `${minutes} min` : `${Math.round(minutes / 6) / 10} h`
}

export async function createBackfill(assets: string[], flags: BackfillFlags): Promise<void> {
  const body = { ...bodyOf(assets, flags), ...(flags.key !== undefined && { request_id: flags.key }) }
  await created(flags, ({ backfills }) => backfills.create(body, currentUser()))
}

export async function retryFailed(id: string, flags: ProjectFlags & { key?: string; wait?: boolean }): Promise<void> {
  const body = flags.key === undefined ? {} : { request_id: flags.key }
  await created(flags, ({ backfills }) => backfills.retryFailed(id, body, currentUser()))
}

async function created(
  flags: ProjectFlags & { wait?: boolean },
  command: (api: WorkspaceApi) => Promise<CreatedBackfill>,
): Promise<void> {
  const { made, isLive } = await tell(flags, async (api, live) => ({ made: await command(api), isLive: live }))
  if (made.backfill_id === null) {
    if (flags.json) printJson(made)
    else print(printable(made.message))
    return
  }
  if (!isLive) note('no server is running; it begins when one is started (servo dev)')
  if (flags.wait && isLive) await waitFor(made.backfill_id, flags)
  else if (flags.json) printJson(made)
  else
    print(`${made.backfill_id}  ${sizeText(made.total_partitions, made.total_chunks)}${made.created ? '' : ', created before'}`)
}

/** Often enough to see it move; a backfill takes longer than a run. */
const LOOK_EVERY_MS = 500

/** Shows the progress until the end, and exits with 1 unless it succeeded. */
async function waitFor(id: string, flags: ProjectFlags): Promise<void> {
  let shown: WireBackfill | undefined
  const live = flags.json ? undefined : LiveBlock.on(() => (shown === undefined ? [] : [progressOf(shown)]))
  live?.start()
  try {
    for (;;) {
      const { backfill } = await ask(flags, ({ backfills }) => backfills.get(id))
      shown = backfill
      if (isOver(backfill)) break
      await sleep(LOOK_EVERY_MS)
    }
  } finally {
    live?.stop()
  }
  if (flags.json) printJson(shown)
  else print(lineOf(shown))
  if (shown.state !== 'SUCCEEDED') process.exitCode = 1
}

const isOver = ({ state }: WireBackfill): boolean => state === 'SUCCEEDED' || state === 'FAILED' || state === 'CANCELLED'

const endedOf = (backfill: WireBackfill): number =>
  backfill.succeeded_partitions + backfill.failed_partitions + backfill.skipped_partitions + backfill.cancelled_partitions

const BAR = 30

function progressOf(backfill: WireBackfill): Cell[] {
  const { total_partitions: total, expected_end } = backfill
  const ended = endedOf(backfill)
  const full = Math.floor((BAR * ended) / total)
  const bar = `${'█'.repeat(full)}${'░'.repeat(BAR - full)}`
  const rest = expected_end === null ? '' : `, done at ${localTime(expected_end)}`
  return [{ text: bar }, { text: `${countsOf(backfill)}${rest}` }]
}

function countsOf(backfill: WireBackfill): string {
  const { failed_partitions: failed, skipped_partitions: skipped, cancelled_partitions: cancelled } = backfill
  const others = [
    failed > 0 && `${failed} failed`,
    skipped > 0 && `${skipped} skipped`,
    cancelled > 0 && `${cancelled} cancelled`,
  ].filter((one) => one !== false)
  return [`${endedOf(backfill)} of ${counted(backfill.total_partitions, 'partition')}`, ...others].join(', ')
}

const stateText = ({ state }: WireBackfill): string => state.toLowerCase().replaceAll('_', ' ')

const lineOf = (backfill: WireBackfill): string => `${backfill.backfill_id}  ${stateText(backfill)}  ${countsOf(backfill)}`

export async function listBackfills(
  flags: ProjectFlags & { limit?: string; cursor?: string; state?: string; asset?: string },
): Promise<void> {
  const state = flags.state === undefined ? undefined : choiceOf('--state', flags.state.toUpperCase(), backfillStates)
  const query = { limit: limitFlag(flags.limit), cursor: flags.cursor, state, asset: flags.asset }
  const page = await ask(flags, ({ backfills }) => backfills.list(query))
  if (flags.json) {
    printJson(page)
    return
  }
  if (page.backfills.length === 0) print('no backfills')
  else
    printTable(
      headsOf(['backfill', 'state', 'created', 'partitions', 'assets']),
      page.backfills.map((backfill): Cell[] => [
        { text: backfill.backfill_id },
        { text: stateText(backfill) },
        { text: localTime(backfill.created_at) },
        { text: countsOf(backfill) },
        { text: printable(backfill.asset_selection.join(' ')), paint: colours.dim },
      ]),
    )
  if (page.next_cursor !== null) print(colours.dim(`more: --cursor ${page.next_cursor}`))
}

/** Keys of failed partitions that are shown. */
const SHOWN_KEYS = 10

export async function showBackfill(id: string, flags: ProjectFlags): Promise<void> {
  const detail = await ask(flags, ({ backfills }) => backfills.get(id))
  if (flags.json) {
    printJson(detail)
    return
  }
  const { backfill, assets } = detail
  print(lineOf(backfill))
  const about: [string, string | null | undefined | false][] = [
    ['why', backfill.state_reason],
    ['assets', backfill.asset_selection.join(' ')],
    [
      'chunks',
      `${backfill.planned_chunks} of ${backfill.total_chunks} planned, ${backfill.active_chunks.length} active, at most ${backfill.max_concurrent_runs}`,
    ],
    ['created', `${localTime(backfill.created_at)} by ${backfill.created_by}`],
    ['retries', backfill.parent_backfill_id],
    ['speed', backfill.partitions_per_minute !== null && `${backfill.partitions_per_minute} partitions a minute`],
    ['done at', backfill.expected_end && localTime(backfill.expected_end)],
    ['ended', backfill.finished_at && localTime(backfill.finished_at)],
    ['version', String(backfill.state_version)],
    ...assets.flatMap(({ asset_key, failed, failed_partitions }): [string, string][] => {
      if (failed_partitions === 0) return []
      const more = failed_partitions - Math.min(failed.keys.length, SHOWN_KEYS)
      const keys = failed.keys.slice(0, SHOWN_KEYS).join(' ')
      return [['failed', `${asset_key}: ${keys}${more > 0 ? ` and ${more} more` : ''}`]]
    }),
    ['retry', isOver(backfill) && backfill.failed_partitions > 0 && `servo backfills retry-failed ${backfill.backfill_id}`],
  ]
  const rows = about.flatMap(([name, value]): Cell[][] =>
    value ? [[{ text: name, paint: colours.dim }, { text: printable(value) }]] : [],
  )
  for (const line of alignRows(rows)) print(`  ${line}`)
}

interface ChangeFlags extends ProjectFlags {
  concurrency?: string
  priority?: string
  stopAfterFailures?: string
  key?: string
  expectedStateVersion?: string
}

export async function changeBackfill(id: string, flags: ChangeFlags): Promise<void> {
  const expected = number('--expected-state-version', flags.expectedStateVersion, 1, 2_147_483_647)
  const changes = withoutUndefined(howOf(flags))
  if (Object.keys(changes).length === 0)
    throw badFlag('change what?', 'Give --concurrency, --priority or --stop-after-failures.')
  const body = { ...changes, ...(flags.key !== undefined && { request_id: flags.key }) }
  const done = await tell(flags, ({ backfills }) => backfills.update(id, body, currentUser(), expected))
  if (flags.json) printJson(done)
  else print(`${done.backfill_id}: ${done.message}`)
}

interface SwitchFlags extends ProjectFlags {
  reason?: string
  key?: string
  cancelRuns?: boolean
  expectedStateVersion?: string
}

export async function switchBackfill(to: 'pause' | 'resume' | 'cancel', id: string, flags: SwitchFlags): Promise<void> {
  const expected = number('--expected-state-version', flags.expectedStateVersion, 1, 2_147_483_647)
  const body = {
    ...(flags.reason !== undefined && { reason: flags.reason }),
    ...(flags.key !== undefined && { request_id: flags.key }),
  }
  const done: AcceptedBackfill = await tell(flags, ({ backfills }) =>
    to === 'cancel'
      ? backfills.cancel(id, { ...body, ...(flags.cancelRuns && { cancel_runs: true }) }, currentUser(), expected)
      : backfills[to](id, body, currentUser(), expected),
  )
  if (flags.json) printJson(done)
  else print(`${done.backfill_id}: ${done.message}`)
}
