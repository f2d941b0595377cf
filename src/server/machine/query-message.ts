import type { QueryAnswer } from '../../api/query/query-contract.ts'
import type { Scope } from '../../engine/paths.ts'
import type { ErrorKind } from '../../lib/error.ts'

/** What a query may use. */
export const LIMITS = {
  /** Of DuckDB. Values on their way out take about as much again. */
  memory: '256MB',
  threads: '2',
  /** Of JSON in an answer. */
  bytes: 8 << 20,
  /** Of JavaScript, in megabytes. */
  heapMb: 256,
} as const

export interface QueryQuestion {
  readonly dir: string
  readonly scope: Scope
  readonly sql: string
  readonly limit: number
}

export type AnsweredQuery =
  | { readonly answer: QueryAnswer }
  | { readonly error: { readonly kind: ErrorKind; readonly code: string; readonly message: string; readonly hint?: string } }
