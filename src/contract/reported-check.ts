import { isObject } from '../lib/is-object.ts'
import { eitherText, isBoolean, isText, objectOf } from '../lib/shape.ts'

/** What became of a check. */
export interface ReportedCheck {
  readonly name: string
  readonly ok: boolean
  /** `error` fails the attempt, `warn` does not. */
  readonly severity: 'error' | 'warn'
  /** What was found: `message` in words, and further facts. */
  readonly metadata?: Readonly<Record<string, unknown>> | null | undefined
}

const isFound = (value: unknown): value is ReportedCheck['metadata'] =>
  value === undefined || value === null || (isObject(value) && !Array.isArray(value))

const isReportedCheck = objectOf({ name: isText, ok: isBoolean, severity: eitherText('error', 'warn'), metadata: isFound })

export type CheckState = 'passed' | 'warned' | 'failed'

export const checkState = ({ ok, severity }: Pick<ReportedCheck, 'ok' | 'severity'>): CheckState =>
  ok ? 'passed' : severity === 'warn' ? 'warned' : 'failed'

/** The checks in the output of an attempt, which is stored as any worker reported it. */
export function checksIn(output: unknown): ReportedCheck[] {
  const reported = typeof output === 'object' && output !== null && 'checks' in output ? output.checks : undefined
  if (!Array.isArray(reported)) return []
  return reported.filter(isReportedCheck).map(({ name, ok, severity, metadata }) => {
    return { name, ok, severity, ...(metadata !== undefined && { metadata }) }
  })
}

/** As much as stands in a line. */
const MAX_FINDING = 300

/** What a check found, in one line; empty if it says nothing. */
export function findingText({ metadata }: Pick<ReportedCheck, 'metadata'>): string {
  const { message, ...facts } = metadata ?? {}
  const { error, ...others } = facts
  const isThrown = typeof message !== 'string' && typeof error === 'string'
  const said = typeof message === 'string' ? [message] : isThrown ? [`it threw: ${error}`] : []
  const found = Object.entries(isThrown ? others : facts)
    .filter(([, fact]) => typeof message !== 'string' || !isSaid(fact, message))
    .map(([name, fact]) => `${name}=${typeof fact === 'string' ? fact : JSON.stringify(fact)}`)
  const text = [...said, ...found].join(' ')
  const line = text.replaceAll(/\s*\n\s*/g, ' ')
  return line.length > MAX_FINDING ? `${line.slice(0, MAX_FINDING)}…`.toWellFormed() : line
}

/** True if a message has this fact already: `rows: 0` in `0 rows, at least 1 expected`, or every item of a list. */
function isSaid(fact: unknown, message: string): boolean {
  const words = ` ${message.replaceAll(/[\s,:;()]+/g, ' ')} `
  return (Array.isArray(fact) ? fact : [fact]).every((item) =>
    words.includes(` ${String(item).replaceAll(/[\s,:;()]+/g, ' ')} `),
  )
}

/** `one row per id (3 duplicate values of id: 7, 9, 12)` */
export function namedFinding(check: Pick<ReportedCheck, 'name' | 'metadata'>): string {
  const found = findingText(check)
  return found === '' ? check.name : `${check.name} (${found})`
}
