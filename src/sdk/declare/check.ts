import { invalid, show } from '../invalid.ts'
import { checkOptionNames } from '../option-names.ts'
import type { DataTable, MaybePromise } from './values.ts'

/**
 * A check returns true if the value is right, or an object with details: `{ ok: false, missing: 3 }`. A `message` describes the result in
 * words.
 */
export type CheckResult = boolean | { readonly ok: boolean; readonly [fact: string]: unknown }

/** Consumes a value, so a check of few columns fits every table that has them. */
export type CheckFunction<Value> = (value: Value) => MaybePromise<CheckResult>

export interface Check<Value> {
  readonly test: CheckFunction<Value>
  /** `error` fails the attempt, so that the value is not published; `warn` is only recorded. */
  readonly severity: 'error' | 'warn'
}

/**
 * A check that only warns. It can be called, because the compiler leaves calls that return functions for last. By then it has seen `run`,
 * and knows which value the function in `check.warn` takes.
 */
export interface WarningCheck<Value> extends Check<Value> {
  (value: Value): MaybePromise<CheckResult>
  readonly severity: 'warn'
}

/** Checks by name. */
export type Checks<Value> = Readonly<Record<string, Check<Value> | CheckFunction<Value>>>

type TableWith<Names extends string> = DataTable<{ readonly [Name in Names]: unknown }>

const error = <Value>(test: CheckFunction<Value>): Check<Value> => ({ test, severity: 'error' })

/** A name as SQL has it. */
const quoteColumn = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** A query that has names of columns in its text, where a parameter cannot stand. */
const asTemplate = (text: string): TemplateStringsArray => Object.assign([text], { raw: [text] })

/** Enough to see what they have in common. */
const EXAMPLES = 5

/** `7`, or `(7, eu)` for several columns. */
function keyText(values: readonly unknown[]): string {
  const texts = values.map((value) => (value instanceof Date ? value.toISOString() : String(value)))
  return texts.length === 1 ? (texts[0] ?? '') : `(${texts.join(', ')})`
}

function checkColumnNames(columns: readonly string[], check: string): void {
  if (columns.length > 0 && columns.every((column) => typeof column === 'string' && column !== '')) return
  throw invalid(
    'bad_check',
    `check.${check}(${columns.map(show).join(', ')}) needs column names`,
    `Write check.${check}('id').`,
  )
}

export const check = {
  /** The number of rows is between `min` and `max`, both included. */
  rowCount(bounds: { min?: number; max?: number }): Check<DataTable<unknown>> {
    checkOptionNames('check.rowCount()', bounds, ['min', 'max'])
    const { min = 0, max = Number.POSITIVE_INFINITY } = bounds
    if (!(min >= 0 && max >= min))
      throw invalid(
        'bad_check',
        `check.rowCount() cannot pass: no number is between ${min} and ${max}`,
        'Write check.rowCount({ min: 1 }).',
      )
    return error(async (table) => {
      const [answer] = await table.sql<{ rows: number }>`select count(*) as rows from this`
      const rows = answer?.rows ?? 0
      const bound = rows < min ? `at least ${min}` : `at most ${max}`
      const ok = rows >= min && rows <= max
      return { ok, rows, ...(!ok && { message: `${rows === 1 ? '1 row' : `${rows} rows`}, ${bound} expected` }) }
    })
  },

  /** No two rows have the same values in these columns. */
  unique<const Names extends string>(...columns: readonly Names[]): Check<TableWith<Names>> {
    checkColumnNames(columns, 'unique')
    const list = columns.map(quoteColumn).join(', ')
    const query = asTemplate(`select count(*) as repeated from (select 1 from this group by ${list} having count(*) > 1)`)
    const groups = asTemplate(
      `select ${list} from this group by ${list} having count(*) > 1 order by ${list} limit ${EXAMPLES}`,
    )
    return error(async (table) => {
      const [answer] = await table.sql<{ repeated: number }>(query)
      const repeated = answer?.repeated ?? 0
      if (repeated === 0) return { ok: true, repeated }
      const examples = (await table.sql<Record<string, unknown>>(groups)).map((row) =>
        keyText(columns.map((name) => row[name])),
      )
      const more = repeated > examples.length ? ', …' : ''
      const what = `${repeated} duplicate ${repeated === 1 ? 'value' : 'values'} of ${columns.join(', ')}`
      return { ok: false, repeated, examples, message: `${what}: ${examples.join(', ')}${more}` }
    })
  },

  /** Every row has a value in each of these columns. */
  notNull<const Names extends string>(...columns: readonly Names[]): Check<TableWith<Names>> {
    checkColumnNames(columns, 'notNull')
    const missing = columns.map((column) => `${quoteColumn(column)} is null`).join(' or ')
    const query = asTemplate(`select count(*) as missing from this where ${missing}`)
    return error(async (table) => {
      const [answer] = await table.sql<{ missing: number }>(query)
      const count = answer?.missing ?? 0
      const rows = count === 1 ? '1 row' : `${count} rows`
      return { ok: count === 0, missing: count, ...(count > 0 && { message: `${rows} without ${columns.join(' or ')}` }) }
    })
  },

  /**
   * Turns a check into a warning: a failure is recorded and does not fail the attempt. A function of your own gets the type of the value; if
   * `run` of an asset has parameters, write the type yourself: `check.warn((value: Sales) => …)`.
   */
  // biome-ignore lint/suspicious/noExplicitAny: the compiler does not look into a `run` with parameters before this call
  warn<Value = any>(check: Check<Value> | CheckFunction<Value>): WarningCheck<Value> {
    const { test } = asCheck(check)
    return Object.assign((value: Value) => test(value), { test, severity: 'warn' as const })
  },
}

export function asCheck<Value>(check: Check<Value> | CheckFunction<Value>): Check<Value> {
  return 'severity' in check ? check : error(check)
}
