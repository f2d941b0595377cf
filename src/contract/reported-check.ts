import { z } from 'zod'

/** What became of a check. */
export const reportedCheck = z.object({
  name: z.string(),
  ok: z.boolean(),
  /** `error` fails the attempt, `warn` does not. */
  severity: z.enum(['error', 'warn']),
  /** What was found: `message` in words, and further facts. */
  metadata: z.record(z.string(), z.unknown()).nullish(),
})
export type ReportedCheck = z.infer<typeof reportedCheck>

export type CheckState = 'passed' | 'warned' | 'failed'

export const checkState = ({ ok, severity }: Pick<ReportedCheck, 'ok' | 'severity'>): CheckState =>
  ok ? 'passed' : severity === 'warn' ? 'warned' : 'failed'

/** The checks in the output of an attempt, which is stored as any worker reported it. */
export function checksIn(output: unknown): ReportedCheck[] {
  const reported = typeof output === 'object' && output !== null && 'checks' in output ? output.checks : undefined
  if (!Array.isArray(reported)) return []
  return reported.flatMap((each) => reportedCheck.safeParse(each).data ?? [])
}

/** As much as stands in a line. */
const MAX_FINDING = 300

/** What a check found, in one line; empty if it says nothing. */
export function findingText({ metadata }: Pick<ReportedCheck, 'metadata'>): string {
  const { message, ...facts } = metadata ?? {}
  const { error, ...others } = facts
  const text =
    typeof message === 'string'
      ? message
      : typeof error === 'string'
        ? `it threw: ${error}`
        : Object.entries(others)
            .map(([name, fact]) => `${name}=${typeof fact === 'string' ? fact : JSON.stringify(fact)}`)
            .join(' ')
  const line = text.replaceAll(/\s*\n\s*/g, ' ')
  return line.length > MAX_FINDING ? `${line.slice(0, MAX_FINDING)}…`.toWellFormed() : line
}

/** `one row per id (3 duplicate values of id: 7, 9, 12)` */
export function namedFinding(check: Pick<ReportedCheck, 'name' | 'metadata'>): string {
  const found = findingText(check)
  return found === '' ? check.name : `${check.name} (${found})`
}
