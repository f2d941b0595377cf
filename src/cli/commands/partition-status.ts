import type { PartitionPage, PartitionStatus, PartitionSummary, StatusApi, StatusFilter } from '../../api/status-contract.ts'
import { causeNames, type DisplayStatus } from '../../domain/partitions/status-names.ts'
import { staleInWords } from '../../domain/why/words-assets.ts'
import { ask } from '../ask-and-tell.ts'
import type { Cell } from '../columns.ts'
import { choiceOf, limitFlag, splitPartition } from '../flags.ts'
import { colours, headsOf, note, print, printable, printJson, printTable } from '../output.ts'
import type { ProjectFlags } from '../project.ts'
import { noAssets } from '../show-asset.ts'
import { localTime } from '../show-run.ts'

/** Staleness depends on the code. */
const askStatus = <T>(flags: ProjectFlags, question: (statuses: StatusApi) => Promise<T>): Promise<T> =>
  ask(flags, ({ statuses }) => question(statuses), { ofCode: true })

interface PageFlags extends ProjectFlags {
  limit?: string
  cursor?: string
}

export interface ListFlags extends PageFlags {
  partition?: string
  status?: string
  oldest?: boolean
}

export async function listPartitions(select: readonly string[], flags: ListFlags): Promise<void> {
  const limit = limitFlag(flags.limit)
  const status = flags.status === undefined ? undefined : statusFlag(flags.status)
  const { partition, cursor, oldest } = flags
  const query = { select, partition, status, order: oldest ? ('oldest' as const) : ('newest' as const), limit, cursor }
  await showPage(select, flags, (statuses) => statuses.list(query), 'no partition matches')
}

export async function listStale(select: readonly string[], flags: PageFlags & { cause?: string }): Promise<void> {
  const limit = limitFlag(flags.limit)
  const cause = flags.cause === undefined ? undefined : choiceOf('--cause', flags.cause, causeNames)
  await showPage(
    select,
    flags,
    (statuses) => statuses.stale({ select, cause, limit, cursor: flags.cursor }),
    'nothing is stale',
  )
}

export async function showSummaries(select: readonly string[], flags: ProjectFlags): Promise<void> {
  const found = await askStatus(flags, (statuses) => statuses.summaries(select))
  if (flags.json) {
    printJson(found)
    return
  }
  if (found.length === 0) print(noAssets(select))
  const rows = found.map((summary) => {
    const { asset_key, partitions, first, last, statuses, causes: ownCauses, stale_by_upstream, last_attempt_failed } = summary
    const because = Object.entries({ ...ownCauses, upstream_stale: stale_by_upstream }).filter(([, count]) => count > 0)
    return [
      { text: printable(asset_key) },
      number(partitions),
      number(statuses.MATERIALIZED, colours.green),
      number(statuses.STALE, colours.yellow),
      number(last_attempt_failed, colours.red),
      number(neverTried(summary)),
      { text: partitions > 1 ? printable(`${first} … ${last}`) : printable(first ?? 'none yet') },
      { text: because.map(([cause, count]) => `${words(cause)} ${count}`).join(', '), paint: colours.dim },
    ]
  })
  const numbers = ['partitions', 'materialized', 'stale', 'failed', 'missing']
  if (found.length > 0) printTable(headsOf(['asset', ...numbers, 'keys', 'because'], numbers), rows)
}

/** Those that were never made, without those that somebody tried to make. */
const neverTried = ({ statuses, last_attempt_failed }: PartitionSummary): number =>
  statuses.NEVER_MATERIALIZED - (last_attempt_failed - statuses.MATERIALIZED_BUT_LAST_ATTEMPT_FAILED)

const number = (count: number, paint?: (text: string) => string): Cell => ({
  text: count.toLocaleString('en'),
  right: true,
  ...(paint !== undefined && count > 0 && { paint }),
})

export async function showWhy(asset: string, partition: string | undefined, flags: ProjectFlags): Promise<void> {
  const asked = splitPartition(asset, partition)
  const why = await askStatus(flags, (statuses) => statuses.why(asked.name, asked.partition))
  if (flags.json) {
    printJson(why)
    return
  }
  const name = why.partition_key === '' ? why.asset_key : `${why.asset_key}[${why.partition_key}]`
  print(`${printable(name)} ${statusColour[why.status](statusSentence[why.status])}`)
  if (why.last_materialization_at !== null) {
    const by = why.last_materialization_run_id === null ? 'reported by another program' : why.last_materialization_run_id
    print(colours.dim(`  made ${localTime(why.last_materialization_at)}, ${by}`))
  }
  if (why.last_attempt_outcome === 'FAILED')
    print(colours.dim(`  last attempt failed ${localTime(why.last_attempt_at)}, ${why.last_attempt_run_id}`))
  if (why.wiped_at !== null) print(colours.dim(`  wiped ${localTime(why.wiped_at)}`))
  if (why.because.length === 0) print('  neither its code nor anything upstream has changed since')
  for (const each of why.because) {
    print(`  ${colours.yellow(words(each.cause))}  ${printable(staleInWords(each, localTime))}`)
    print(colours.dim(`    ${printable(each.path.join(' → '))}`))
  }
}

/** Shows a page of the partitions of selected assets. If it is empty because the selection matches no asset, it says that instead of `none`. */
async function showPage(
  select: readonly string[],
  flags: ProjectFlags,
  question: (statuses: StatusApi) => Promise<PartitionPage>,
  none: string,
): Promise<void> {
  const { page, hasAssets } = await ask(
    flags,
    async ({ statuses, assets }) => {
      const page = await question(statuses)
      const isEmpty = page.partitions.length === 0
      return { page, hasAssets: !isEmpty || (await assets.list({ select, limit: 1, cursor: undefined })).assets.length > 0 }
    },
    { ofCode: true },
  )
  if (flags.json) {
    // The list is empty either way.
    if (!hasAssets) note(noAssets(select))
    printJson(page)
  } else if (page.partitions.length > 0) {
    printTable(HEADS, page.partitions.map(row))
    if (page.next_cursor !== null) print(colours.dim(`more: --cursor ${page.next_cursor}`))
  } else print(hasAssets ? none : noAssets(select))
}

const HEADS = headsOf(['asset', 'partition', 'status', 'materialized', 'because'])

function row(each: PartitionStatus): Cell[] {
  const because = each.causes.length > 0 ? each.causes.map(words).join(', ') : each.is_stale ? 'upstream stale' : ''
  return [
    { text: printable(each.asset_key) },
    { text: printable(each.partition_key) },
    isFailedFirst(each)
      ? { text: 'missing, last attempt failed', paint: colours.red }
      : { text: statusWords[each.status], paint: statusColour[each.status] },
    { text: each.status === 'NEVER_MATERIALIZED' ? wipedAt(each) : localTime(each.last_materialization_at) },
    { text: because, paint: colours.dim },
  ]
}

/** True if nothing was made yet, or nothing that counts, and the last attempt failed. Whoever wiped it since has done with that attempt. */
export const isFailedFirst = ({ status, last_attempt_outcome, last_attempt_at, wiped_at }: PartitionStatus): boolean =>
  status === 'NEVER_MATERIALIZED' && last_attempt_outcome === 'FAILED' && (wiped_at ?? '') < (last_attempt_at ?? '')

const wipedAt = ({ wiped_at }: PartitionStatus): string => (wiped_at === null ? '' : `wiped ${localTime(wiped_at)}`)

const statusWords: Readonly<Record<DisplayStatus, string>> = {
  NEVER_MATERIALIZED: 'missing',
  MATERIALIZED_BUT_LAST_ATTEMPT_FAILED: 'materialized, last attempt failed',
  STALE: 'stale',
  MATERIALIZED: 'materialized',
}
const statusColour: Readonly<Record<DisplayStatus, (text: string) => string>> = {
  NEVER_MATERIALIZED: colours.dim,
  MATERIALIZED_BUT_LAST_ATTEMPT_FAILED: colours.red,
  STALE: colours.yellow,
  MATERIALIZED: colours.green,
}
/** What follows the name of a partition. */
const statusSentence: Readonly<Record<DisplayStatus, string>> = {
  NEVER_MATERIALIZED: 'was never materialized',
  MATERIALIZED_BUT_LAST_ATTEMPT_FAILED: 'is materialized, but its last attempt failed',
  STALE: 'is stale',
  MATERIALIZED: 'is materialized',
}
const words = (name: string): string => name.replaceAll('_', ' ')

/** The words of `servo run` for a status, and the names that JSON has. */
const STATUSES = {
  materialized: 'MATERIALIZED',
  stale: 'STALE',
  failed: 'LAST_ATTEMPT_FAILED',
  missing: 'NEVER_MATERIALIZED',
} as const

const statusFlag = (text: string): StatusFilter =>
  STATUSES[choiceOf('--status', text, ['materialized', 'stale', 'failed', 'missing'])]
