import type { AssetDetail, AssetSummary, WireStatus } from '../api/asset-contract.ts'
import type { WorkspaceApi } from '../api/workspace-contract.ts'
import { checkState } from '../contract/reported-check.ts'
import { isServoError } from '../lib/error.ts'
import { counted } from '../lib/text/counted.ts'
import { alignRows, type Cell } from './columns.ts'
import { colours, printable, shortly } from './output.ts'
import { checkLine } from './results/checks.ts'
import { localTime, shortId, stateCell } from './show-run.ts'

/** `daily from 2025-01-01, 684`; nothing for an asset that is made as a whole. */
export const partitionsText = (partitions: AssetSummary['partitions']): string =>
  partitions === null ? '' : `${partitions.words}, ${partitions.count}`

/** As many names as one takes in at a glance; `--json` has them all. */
const SHOWN_DOWNSTREAM = 20

/** Prints everything known of an asset, fixed parts first. */
export function shownAsset(detail: AssetDetail): string[] {
  const { asset, definition, upstream, downstream } = detail
  const head = [colours.bold(printable(asset.asset_key)), asset.kind, colours.dim(`group ${printable(asset.group)}`)].join('  ')
  const lines = [head]
  if (definition.description) lines.push(...definition.description.split('\n').map((line) => `  ${printable(line)}`))
  const about = [...declarationLines(detail), ...historyLines(detail)].map(([name, value]): Cell[] => [
    { text: name, paint: colours.dim },
    { text: printable(value) },
  ])
  lines.push(...alignRows(about).map((line) => `  ${line}`))
  if (detail.last_checks !== null) {
    const { run_id, partition_key, at, checks } = detail.last_checks
    const of = partition_key === null ? '' : ` of ${printable(partition_key)}`
    lines.push(
      colours.dim(`checks${of}, ${localTime(at)} by ${shortId(run_id)}`),
      ...checks.map((check) => `  ${checkLine(check)}`),
    )
  }
  lines.push(...failedLines(detail))
  if (upstream.length > 0) {
    lines.push(colours.dim('upstream'))
    const rows = upstream.map(({ asset_key, input, words }): Cell[] => [
      { text: printable(asset_key) },
      { text: input === null ? 'runs before it' : `as ${printable(input)}`, paint: colours.dim },
      { text: words === null ? '' : printable(words), paint: colours.dim },
    ])
    lines.push(...alignRows(rows).map((line) => `  ${line}`))
  }
  if (downstream.length > 0) {
    lines.push(colours.dim('downstream'))
    lines.push(...downstream.slice(0, SHOWN_DOWNSTREAM).map((key) => `  ${printable(key)}`))
    if (downstream.length > SHOWN_DOWNSTREAM) lines.push(colours.dim(`  and ${downstream.length - SHOWN_DOWNSTREAM} more`))
  }
  return lines
}

/** The partitions whose last attempt failed: a later success of another partition must not hide them. */
function failedLines({ asset, failed_partitions }: AssetDetail): string[] {
  if (failed_partitions === null || failed_partitions.count === 0) return []
  const { count, newest } = failed_partitions
  const lines = newest.flatMap(({ partition_key, at, since, error_message, checks }) => {
    const blocking = checks.filter((check) => checkState(check) === 'failed')
    const why = blocking.length > 0 ? blocking.map(checkLine) : [printable((error_message ?? '').split('\n', 1)[0] ?? '')]
    const begun = since === null || since === at ? '' : colours.dim(`, failing since ${localTime(since)}`)
    return why.map((line) => `  ${printable(partition_key)}  ${line}${begun}`.trimEnd())
  })
  const more = count - newest.length
  const list = `servo partitions list ${printable(asset.asset_key)} --status failed`
  const heading = `the last attempt failed for ${count.toLocaleString('en')} ${count === 1 ? 'partition' : 'partitions'}`
  return [
    colours.red(heading),
    ...lines,
    ...(more > 0 ? [colours.dim(`  and ${more.toLocaleString('en')} more: ${list}`)] : []),
  ]
}

type NamedValue = readonly [name: string, value: string]

function declarationLines({ asset, definition }: AssetDetail): NamedValue[] {
  const { partitions } = asset
  const {
    file,
    line,
    owners,
    tags,
    kinds,
    retry,
    timeout_sec,
    heartbeat_timeout_sec,
    pool,
    queue,
    priority,
    code_version,
    io,
    uri,
    checks,
  } = definition
  const facts: (NamedValue | false | undefined)[] = [
    file ? ['declared in', `${file}${line ? `:${line}` : ''}`] : undefined,
    ['partitions', partitions === null ? 'none' : partitionsText(partitions)],
    partitions !== null && partitions.count > 0 && ['', `${partitions.first} to ${partitions.last}`],
    owners.length > 0 && ['owners', owners.join(', ')],
    Object.keys(tags).length > 0 && ['tags', pairs(tags)],
    kinds.length > 0 && ['made with', kinds.join(', ')],
    uri ? ['data', uri] : io !== 'none' && ['stored as', io],
    retry
      ? ['retry', `${counted(retry.max_attempts, 'attempt')}, ${retry.backoff} from ${seconds(retry.initial_ms)}`]
      : undefined,
    timeout_sec ? ['timeout', `${timeout_sec} s`] : undefined,
    heartbeat_timeout_sec ? ['heartbeat timeout', `${heartbeat_timeout_sec} s`] : undefined,
    pool ? ['pool', pool] : undefined,
    queue ? ['queue', queue] : undefined,
    priority !== 0 && ['priority', String(priority)],
    checks.length > 0 && ['checks', checks.map(({ name, severity }) => `${name} (${severity})`).join(', ')],
    ...policies(definition.policies),
    code_version ? ['code version', code_version] : undefined,
  ]
  return facts.filter((fact): fact is NamedValue => Boolean(fact))
}

/** Durations are put into words; settings that other parts of Servo read are shown as recorded. */
function policies(all: Readonly<Record<string, unknown>>): NamedValue[] {
  return Object.entries(all).map(([name, policy]): NamedValue => {
    const { type, by, timezone, within_ms } = policy as Record<string, string | number | undefined>
    if (name !== 'freshness') return [name, typeof policy === 'string' ? policy : JSON.stringify(policy)]
    return [name, type === 'by' ? `by ${by} ${timezone}` : `within ${seconds(Number(within_ms))}`]
  })
}

/** The status of an asset without partitions, or the last run that touched any partition. */
function historyLines({ asset, status, wiped, last_run, last_failure }: AssetDetail): NamedValue[] {
  const facts = asset.partitions === null ? [...statusFacts(status, wiped), ...failureFacts(last_failure)] : []
  if (last_run === null) return facts
  return [...facts, ['last run', `${shortId(last_run.run_id)} ${stateCell(last_run.state).text}, ${localTime(last_run.at)}`]]
}

function statusFacts(status: WireStatus | null, wiped: boolean): NamedValue[] {
  if (status === null) return [['materialized', 'never']]
  const { last_materialization_at: at, last_materialization_run_id: run } = status
  const { last_attempt_at: triedAt, last_attempt_outcome: outcome, last_attempt_run_id: triedBy } = status
  const facts: NamedValue[] = [
    ['materialized', at ? `${localTime(at)} ${run ? `by ${shortId(run)}` : 'outside Servo'}` : 'never'],
  ]
  if (wiped && status.wiped_at !== null) {
    const why = status.wiped_reason ? `: ${status.wiped_reason}` : ''
    facts.push(['wiped', `${localTime(status.wiped_at)} by ${status.wiped_by ?? 'somebody'}${why}`])
  }
  if (triedAt && outcome && triedBy)
    facts.push(['last attempt', `${stateCell(outcome).text}, ${localTime(triedAt)} by ${shortId(triedBy)}`])
  return facts
}

function failureFacts(failure: AssetDetail['last_failure']): NamedValue[] {
  if (failure === null) return []
  const { since, error_message } = failure
  const [error = ''] = (error_message ?? '').split('\n', 1)
  const facts: NamedValue[] = [
    ['failing since', since === null ? '' : localTime(since)],
    ['error', error],
  ]
  return facts.filter(([, value]) => value !== '')
}

const pairs = (map: Readonly<Record<string, string>>): string =>
  Object.entries(map)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ')

function seconds(ms: number): string {
  if (ms % 3_600_000 === 0 && ms > 0) return `${ms / 3_600_000} h`
  if (ms % 60_000 === 0 && ms > 0) return `${ms / 60_000} min`
  return `${ms / 1_000} s`
}

/** What is said of a selection without assets. */
export const noAssets = (select: readonly string[]): string =>
  select.length === 0 ? 'the project has no assets' : `no asset matches ${printable(shortly(select.join(' ')))}`

/** What a list of runs or backfills says that has none of an asset. Assets that are gone keep their history, so an unknown one is no error. */
export async function noneOf(what: string, asset: string | undefined, { assets }: WorkspaceApi): Promise<string> {
  if (asset === undefined) return `no ${what} matches`
  const isKnown = await assets.get(asset).then(
    () => true,
    (error: unknown) => {
      if (!isServoError(error, 'not_found')) throw error
      return false
    },
  )
  return isKnown ? `no ${what} matches` : `no ${what} matches; asset "${printable(shortly(asset))}" is not on record`
}
