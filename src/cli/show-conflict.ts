import type { ComparedPart, Conflict, ConflictingRequest, MessageBody } from '../domain/why/conflicts.ts'
import { wordsOfReason } from '../domain/why/words.ts'
import { colours, printable } from './output.ts'
import { localTime } from './show-run.ts'

/** As many names of a list are shown. */
const SHOWN = 5

/** A conflict for people: what was used twice, both requests, and what to do. */
export function conflictLines(conflict: Conflict, timezone: string): string[] {
  const sides =
    conflict.kind === 'run_key'
      ? [
          `${requestText(conflict.first, conflict.differs, timezone)}, as ${conflict.run_id}`,
          requestText(conflict.later, conflict.differs, timezone),
        ]
      : [`${bodyText(conflict.first)}, accepted`, bodyText(conflict.later)]
  const [first, later] = sides
  const differs =
    conflict.kind === 'run_key' && conflict.differs.length > 0 ? [`  different ${conflict.differs.join(', ')}`] : []
  return [
    `${localTime(conflict.detected_at)}  ${titleOf(conflict)}`,
    `  first  ${first}`,
    `  then   ${later}`,
    ...differs,
    colours.dim(`  ${conflict.advice}`),
  ]
}

function titleOf(conflict: Conflict): string {
  if (conflict.kind === 'message')
    return colours.bold(`message ${oneLine(conflict.message_id)} to ${oneLine(conflict.sensor_name)}`)
  const { key, run_key, sensor_name } = conflict
  const of = sensor_name === null ? '' : ` of ${oneLine(sensor_name)}`
  if (key === null) return `${colours.bold(`run key ${oneLine(run_key)}`)}${of}`
  return `${colours.bold(`key ${oneLine(key)}${of}`)}  ${colours.dim(oneLine(run_key))}`
}

const oneLine = (text: string): string => printable(text).replaceAll('\n', '\\n')

const names = (some: readonly string[], count: number): string =>
  `${some.slice(0, SHOWN).join(', ')}${count > SHOWN ? ` and ${count - SHOWN} more` : ''}`

function requestText(asked: ConflictingRequest | null, differs: readonly ComparedPart[], timezone: string): string {
  if (asked === null) return 'a request that is no longer on record'
  const { origin, assets, asset_count, partitions, partition_count, labels, label_count, priority } = asked
  const pairs = Object.entries(labels).map(([name, value]) => `${name}=${value}`)
  const parts = [
    names(assets, asset_count),
    partitions === null
      ? differs.includes('partitions') && 'no partitions named'
      : `partitions ${names(partitions, partition_count)}`,
    differs.includes('labels') && (label_count === 0 ? 'no labels' : `labels ${names(pairs, label_count)}`),
    differs.includes('priority') && `priority ${priority}`,
  ].filter((part) => part !== false)
  return oneLine(`${wordsOfReason(origin, timezone)}: ${parts.join(', ')}`)
}

const bodyText = ({ body_hash, body_size }: MessageBody): string =>
  oneLine(`${body_size === null ? 'a body' : `${body_size} bytes`}, sha256 ${body_hash?.slice(0, 16) ?? 'unknown'}`)
