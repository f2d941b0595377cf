import type { BackfillDetail, WireBackfill } from '../../../api/automation/backfill-contract.ts'
import type { Reason, WhyAnswer } from '../../../domain/why/reasons.ts'
import { somePartitions } from '../../../domain/why/say.ts'
import { wordsOfReason } from '../../../domain/why/words.ts'
import { alignRows, type Cell } from '../../columns.ts'
import { colours, print, printable } from '../../output.ts'
import { countsOf, stateText } from '../../results/backfill-counts.ts'
import { localTime, localZone } from '../../show-run.ts'

export const lineOf = (backfill: WireBackfill): string =>
  `${backfill.backfill_id}  ${stateText(backfill)}  ${countsOf(backfill)}`

type Line = readonly [string, string]

/** What of the answer to `servo why` is shown, and under which name. */
function lineOfReason(of: Reason): Line | undefined {
  switch (of.code) {
    case 'partitions_failed':
      return ['failed', somePartitions(of.facts.asset_key, of.facts.partition_keys, of.facts.count)]
    case 'chunk_failed':
      return ['error', wordsOfReason(of, localZone())]
    case 'partitions_skipped':
    case 'partitions_overlapped':
      return ['skipped', wordsOfReason(of, localZone())]
    case 'partitions_cancelled':
      return ['cancelled', wordsOfReason(of, localZone())]
    case 'stopped_after_failures':
      return ['stopped', wordsOfReason(of, localZone())]
    case 'log_with':
      return ['log', of.facts.command]
    case 'retry_with':
      return ['retry', of.facts.command]
    case 'resume_with':
      return ['resume', of.facts.command]
    case 'continue_with':
      return ['rest', wordsOfReason(of, localZone())]
    default:
      return undefined
  }
}

/** Everything about a backfill that a person asks for, on a few lines. */
export function printBackfill({ backfill }: BackfillDetail, { because }: WhyAnswer): void {
  print(lineOf(backfill))
  const asked = backfill.cancel_requested_at
  const by = backfill.cancel_requested_by === null ? '' : ` by ${backfill.cancel_requested_by}`
  const why = backfill.cancel_reason === null ? '' : `: ${backfill.cancel_reason}`
  const about: (readonly [string, string | null | undefined | false])[] = [
    ['why', backfill.state_reason],
    ['cancelled', asked !== null && `requested at ${localTime(asked)}${by}${why}`],
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
    ...because.map(lineOfReason).filter((line) => line !== undefined),
  ]
  const rows = about.flatMap(([name, value]): Cell[][] =>
    value ? [[{ text: name, paint: colours.dim }, { text: printable(value) }]] : [],
  )
  for (const line of alignRows(rows)) print(`  ${line}`)
}
