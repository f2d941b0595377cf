import { errorLines } from '../../contract/error-detail.ts'
import { checkState, namedFinding, type ReportedCheck } from '../../contract/reported-check.ts'
import { messageOf, ServoError } from '../../lib/error.ts'
import { wellFormed } from '../../lib/text/well-formed.ts'
import { asCheck, type Checks } from '../declare/check.ts'
import { type DescribingErrors, describeError } from '../described-error.ts'
import { invalid } from '../invalid.ts'
import { membersOf, plainFields, plainObject, shownFields } from '../shown-fields.ts'
import { issuesText, type StandardSchemaV1 } from '../standard-schema.ts'

export async function checkedMetadata(
  key: string,
  schema: StandardSchemaV1 | undefined,
  facts: Record<string, unknown>,
): Promise<Record<string, unknown>> {
  if (schema === undefined || Object.keys(facts).length === 0) return jsonOf(facts)
  const result = await schema['~standard'].validate(facts)
  if (result.issues === undefined) return jsonOf(result.value)
  throw invalid(
    'metadata_does_not_fit',
    `metadata of ${key} does not match its schema: ${issuesText(result.issues)}`,
    'Fix the call of metadata(), or change the schema.',
  )
}

/** Facts are for people and must not fail an attempt: values that JSON cannot hold become text. */
export function jsonOf(facts: unknown): Record<string, unknown> {
  if (typeof facts !== 'object' || facts === null) return {}
  return Object.fromEntries(membersOf(facts).map(([name, value]) => [name.toWellFormed(), plainValue(value)]))
}

const isNoJsonNumber = (value: unknown): boolean =>
  typeof value === 'bigint' || (typeof value === 'number' && !Number.isFinite(value))

function plainValue(value: unknown): unknown {
  const asJson = (given: unknown): unknown => {
    const text = JSON.stringify(given, (_, member: unknown) => (isNoJsonNumber(member) ? String(member) : plainObject(member)))
    return text === undefined ? null : wellFormed(JSON.parse(text))
  }
  try {
    return asJson(value)
  } catch {
    return asJson(plainFields(value))
  }
}

/** What checks threw. What they report has the message only; the error of the attempt has the stack and the causes too. */
const thrownBy = new WeakMap<ReportedCheck, unknown>()

/** The error of an attempt whose value did not pass; none if no check of severity `error` failed. */
export function checkFailure(key: string, checks: readonly ReportedCheck[]): ServoError | undefined {
  const failed = checks.filter((check) => checkState(check) === 'failed')
  if (failed.length === 0) return undefined
  const thrown = failed.filter((check) => thrownBy.has(check)).map((check) => thrownBy.get(check))
  return new ServoError('invalid', 'check_failed', `checks of ${key} failed: ${failed.map(namedFinding).join(', ')}`, {
    hint: 'Fix the data, or the check.',
    ...(thrown.length > 0 && { cause: thrown.length === 1 ? thrown[0] : new AggregateError(thrown, 'several checks threw') }),
  })
}

/** What a check threw that only warns is logged: nothing else shows where it was. */
interface ThrowingChecks {
  readonly describing: DescribingErrors
  readonly warn: (text: string) => void
}

/** Only code without types gets here: most often a check whose body lacks its return. */
const noVerdict = (result: unknown): string =>
  `it returned ${shownFields(result)}; a check returns true or false, or an object with ok: true or ok: false`

export async function runChecks(
  checks: Checks<unknown>,
  value: unknown,
  signal: AbortSignal,
  results: ReportedCheck[],
  { describing, warn }: ThrowingChecks,
): Promise<void> {
  for (const [name, check] of Object.entries(checks)) {
    signal.throwIfAborted()
    const { test, severity } = asCheck(check)
    try {
      const result = await test(value)
      const { ok, ...facts } = typeof result === 'object' && result !== null ? result : { ok: result }
      const metadata = jsonOf(typeof ok === 'boolean' ? facts : { message: noVerdict(result), ...facts })
      results.push({ name, ok: ok === true, severity, metadata })
    } catch (error) {
      const failed: ReportedCheck = { name, ok: false, severity, metadata: { error: messageOf(error) } }
      thrownBy.set(failed, error)
      results.push(failed)
      if (severity === 'warn') {
        const { message, ...detail } = describeError(error, describing)
        warn([`check ${name} threw`, ...errorLines(message, detail)].join('\n'))
      }
    }
  }
}
