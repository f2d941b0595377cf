// Answers one query, and ends: node query-process.ts. The question comes as a line of JSON on the standard input, which stays open as long as
// anybody wants the answer; that goes to the standard output.

import { setPriority } from 'node:os'
import { createInterface } from 'node:readline'
import type { QueryAnswer } from '../../api/query/query-contract.ts'
import { isServoError, messageOf } from '../../lib/error.ts'
import { folderStore } from '../components.ts'
import { queryNewest } from '../sql-rows.ts'
import { type AnsweredQuery, LIMITS, type QueryQuestion } from './query-message.ts'

/** The server and its workers go first. */
const NICE = 10

try {
  setPriority(NICE)
} catch {
  // Some systems do not allow it, and the query takes its share then.
}
// Loaded before the question comes, so that whoever asks does not wait for it.
await import('@duckdb/node-api')

const lines = createInterface({ input: process.stdin })
// Nobody wants the answer any more. DuckDB works in threads of its own, which end with the process.
lines.once('close', () => process.exit(0))
lines.once('line', (line) => {
  const question: QueryQuestion = JSON.parse(line)
  void answer(question).then((answered) => process.stdout.write(`${JSON.stringify(answered)}\n`, () => process.exit(0)))
})

async function answer(question: QueryQuestion): Promise<AnsweredQuery> {
  try {
    return { answer: await rowsFor(question) }
  } catch (error) {
    if (!isServoError(error)) return { error: { kind: 'invalid', code: 'bad_query', message: messageOf(error) } }
    const { kind, code, message, hint } = error
    return { error: { kind, code, message, ...(hint !== undefined && { hint }) } }
  }
}

async function rowsFor({ dir, scope, sql, limit }: QueryQuestion): Promise<QueryAnswer> {
  const { columns, rows } = await queryNewest(dir, folderStore(dir), scope, sql, {
    memory_limit: LIMITS.memory,
    threads: LIMITS.threads,
  })
  const found: QueryAnswer['rows'] = []
  let bytes = 0
  for await (const batch of rows()) {
    for (const row of batch) {
      bytes += JSON.stringify(row).length
      if (found.length === limit || bytes > LIMITS.bytes) return { columns, rows: found, truncated: true }
      found.push(row)
    }
  }
  return { columns, rows: found, truncated: false }
}
