import type {
  AcceptedBackfill,
  BackfillPreview,
  BackfillPreviewBody,
  CreatedBackfill,
} from '../../api/automation/backfill-contract.ts'
import type { WorkspaceApi } from '../../api/workspace-contract.ts'
import { backfillStates } from '../../domain/backfills/backfills.table.ts'
import { SECOND_MS } from '../../lib/time.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import { inputsInWords } from '../../server/workspace/backfills/missing-inputs.ts'
import { ask, tell } from '../ask-and-tell.ts'
import type { Cell } from '../columns.ts'
import { badFlag, choiceOf, limitFlag, wholeNumber } from '../flags.ts'
import { colours, headsOf, note, print, printable, printJson, printTable } from '../output.ts'
import { currentUser, type ProjectFlags } from '../project.ts'
import { countsOf, sizeText, stateText } from '../results/backfill-counts.ts'
import { noneOf } from '../show-asset.ts'
import { localTime } from '../show-run.ts'
import { inPartitionFlags, type PartitionFlags, selectorOf } from './backfills/selector-flags.ts'
import { printBackfill } from './backfills/shown-backfill.ts'
import { createdJson, needsServer, waitForBackfill } from './backfills/wait-for-backfill.ts'

export interface BackfillFlags extends ProjectFlags, PartitionFlags {
  chunkSize?: string
  concurrency?: string
  priority?: string
  stopAfterFailures?: string
  force?: boolean
  newestFirst?: boolean
  key?: string
  wait?: boolean
}

/** As long as an id is. */
const ID = /^bf_[0-9a-z]{26}$/

/** The id of the backfill that is meant by the first characters of it, or by all of them. */
const fullId = async (backfills: WorkspaceApi['backfills'], idOrStart: string): Promise<string> =>
  ID.test(idOrStart) ? idOrStart : (await backfills.get(idOrStart)).backfill.backfill_id

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
    select: assets,
    ...selectorOf(flags),
    ...withoutUndefined(numbers),
    ...withoutUndefined({ newest_first: flags.newestFirst }),
  }
}

export async function previewBackfill(assets: string[], flags: BackfillFlags): Promise<void> {
  const body = bodyOf(assets, flags)
  const preview = await inPartitionFlags(() => ask(flags, ({ backfills }) => backfills.preview(body), { ofNext: true }))
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
    print(colours.dim(`left out: ${printable(asset_key)}, ${partitions === 0 ? '' : `${partitions} `}${why}`))
  for (const missing of missing_inputs) print(colours.yellow(`cannot run: ${printable(inputsInWords(missing))}`))
}

const duration = (ms: number): string => {
  const seconds = Math.round(ms / SECOND_MS)
  if (seconds < 90) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  return minutes < 90 ? `${minutes} min` : `${Math.round(minutes / 6) / 10} h`
}

export async function createBackfill(assets: string[], flags: BackfillFlags): Promise<void> {
  const body = { ...bodyOf(assets, flags), ...(flags.key !== undefined && { request_id: flags.key }) }
  await inPartitionFlags(() => created(flags, ({ backfills }) => backfills.create(body, currentUser()), { ofCode: true }))
}

export async function retryFailed(id: string, flags: ProjectFlags & { key?: string; wait?: boolean }): Promise<void> {
  const body = flags.key === undefined ? {} : { request_id: flags.key }
  await created(flags, async ({ backfills }) => backfills.retryFailed(await fullId(backfills, id), body, currentUser()))
}

async function created(
  flags: ProjectFlags & { wait?: boolean },
  command: (api: WorkspaceApi) => Promise<CreatedBackfill>,
  { ofCode = false }: { ofCode?: boolean } = {},
): Promise<void> {
  const { made, backfill, isLive } = await tell(
    flags,
    async (api, live) => {
      const answer = await command(api)
      const { backfill_id: id } = answer
      const found = id === null ? undefined : await api.backfills.get(id)
      return { made: answer, backfill: found?.backfill, isLive: live }
    },
    { ofCode, ...(flags.wait && { needsServer }) },
  )
  if (backfill === undefined) {
    if (flags.json) printJson(made)
    else print(printable(made.message))
    return
  }
  if (!isLive) note('no server is running; it begins when one is started (servo dev)')
  const size = sizeText(made.total_partitions, made.total_chunks)
  const say = (): void => {
    if (!flags.json) print(`${backfill.backfill_id}  ${size}${made.created ? '' : ', created before'}`)
  }
  if (flags.wait) return await waitForBackfill({ made, backfill, say }, flags)
  say()
  if (flags.json) printJson(createdJson(made, backfill))
}

export async function listBackfills(
  flags: ProjectFlags & { limit?: string; cursor?: string; status?: string; asset?: string },
): Promise<void> {
  const status = flags.status === undefined ? undefined : choiceOf('--status', flags.status.toUpperCase(), backfillStates)
  const query = { limit: limitFlag(flags.limit), cursor: flags.cursor, status, asset: flags.asset }
  const isFiltered = status !== undefined || flags.asset !== undefined
  const { page, none } = await ask(flags, async (api) => {
    const page = await api.backfills.list(query)
    const isNone = page.backfills.length === 0 && isFiltered
    return {
      page,
      none: isNone ? await noneOf('backfill', flags.asset, api) : 'no backfills yet; servo backfills create starts one',
    }
  })
  if (flags.json) {
    printJson(page)
    return
  }
  if (page.backfills.length === 0) print(none)
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

export async function showBackfill(id: string, flags: ProjectFlags): Promise<void> {
  if (flags.json) {
    printJson(await ask(flags, ({ backfills }) => backfills.get(id)))
    return
  }
  const { detail, answer } = await ask(flags, async ({ backfills, whys }) => {
    const found = await backfills.get(id)
    return { detail: found, answer: await whys.why('backfill', found.backfill.backfill_id, {}) }
  })
  printBackfill(detail, answer)
}

/** The value of --stop-after-failures with which any number may fail. */
const NO_LIMIT = 'none'

interface ChangeFlags extends ProjectFlags {
  concurrency?: string
  priority?: string
  stopAfterFailures?: string
  key?: string
  expectedStateVersion?: string
}

export async function changeBackfill(id: string, flags: ChangeFlags): Promise<void> {
  const expected = number('--expected-state-version', flags.expectedStateVersion, 1, 2_147_483_647)
  const { stopAfterFailures, ...others } = flags
  // The limit can be taken away again; null is what says so.
  const unlimited = stopAfterFailures === NO_LIMIT ? { stop_after_failures: null } : {}
  const changes = { ...withoutUndefined(howOf(stopAfterFailures === NO_LIMIT ? others : flags)), ...unlimited }
  if (Object.keys(changes).length === 0)
    throw badFlag('change what?', 'Give --concurrency, --priority or --stop-after-failures.')
  const body = { ...changes, ...(flags.key !== undefined && { request_id: flags.key }) }
  const done = await tell(flags, async ({ backfills }) =>
    backfills.update(await fullId(backfills, id), body, currentUser(), expected),
  )
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
  const done: AcceptedBackfill = await tell(flags, async ({ backfills }) => {
    const full = await fullId(backfills, id)
    return to === 'cancel'
      ? await backfills.cancel(full, { ...body, ...(flags.cancelRuns && { cancel_runs: true }) }, currentUser(), expected)
      : await backfills[to](full, body, currentUser(), expected)
  })
  if (flags.json) printJson(done)
  else print(`${done.backfill_id}: ${done.message}`)
}
