import { type ChildProcess, spawn } from 'node:child_process'
import path from 'node:path'
import type { QueryAnswer, QueryApi, QueryBody } from '../../api/query/query-contract.ts'
import type { Scope } from '../../engine/paths.ts'
import { ServoError } from '../../lib/error.ts'
import { MINUTE_MS, SECOND_MS } from '../../lib/time.ts'
import type { AlarmClock } from '../../ports/clock.ts'
import { type AnsweredQuery, LIMITS } from './query-message.ts'

/** Queries that run at the same time. */
const MAX_RUNNING = 2
/** Queries that wait for one of them to end. */
const MAX_WAITING = 20
/** A process that is ready for the next query waits no longer than this. */
const SPARE_MS = MINUTE_MS
/** The answer, a line feed and the names of columns. */
const MAX_ANSWER_BYTES = LIMITS.bytes + (1 << 20)

const SCRIPT = path.join(import.meta.dirname, `query-process${path.extname(import.meta.filename)}`)

/**
 * Answers SQL in processes of their own, one for each query: whatever a query does to memory, to time or to the database, it ends with
 * its process. What a query can reach is decided by `src/adapters/duckdb`; the process adds limits, and an environment with nothing in it.
 */
export class QueryProcesses implements QueryApi {
  readonly #dir: string
  readonly #scope: Scope
  readonly #clock: AlarmClock
  #running = 0
  readonly #waiting: (() => void)[] = []
  /** Started after a query, for the next one: whoever asks once asks again. */
  #spare: ChildProcess | undefined
  #cancelSpare: () => void = () => undefined
  readonly #alive = new Set<ChildProcess>()
  #isClosed = false

  constructor({ servoDir, scope, clock }: { servoDir: string; scope: Scope; clock: AlarmClock }) {
    this.#dir = servoDir
    this.#scope = scope
    this.#clock = clock
  }

  async ask(query: QueryBody): Promise<QueryAnswer> {
    const until = this.#clock.monotonic() + query.timeout_ms
    await this.#turn(query.timeout_ms)
    try {
      return await this.#answer(query, Math.max(1, until - this.#clock.monotonic()))
    } finally {
      this.#running -= 1
      this.#waiting.shift()?.()
      this.#keepSpare()
    }
  }

  close(): void {
    this.#isClosed = true
    this.#cancelSpare()
    for (const child of this.#alive) child.kill('SIGKILL')
  }

  async #turn(timeoutMs: number): Promise<void> {
    if (this.#running >= MAX_RUNNING) {
      if (this.#waiting.length >= MAX_WAITING) throw tooMany()
      const turn = Promise.withResolvers<void>()
      this.#waiting.push(turn.resolve)
      const cancel = this.#clock.after(timeoutMs, () => {
        const place = this.#waiting.indexOf(turn.resolve)
        // Its turn may have come at the same moment.
        if (place < 0) return
        this.#waiting.splice(place, 1)
        turn.reject(tooMany())
      })
      await turn.promise.finally(cancel)
    }
    this.#running += 1
  }

  async #answer({ sql, limit, timeout_ms }: QueryBody, leftMs: number): Promise<QueryAnswer> {
    const child = this.#takeSpare() ?? this.#start()
    const ended = Promise.withResolvers<AnsweredQuery>()
    const cancel = this.#clock.after(leftMs, () => ended.reject(timedOut(timeout_ms)))
    const chunks: Buffer[] = []
    let bytes = 0
    child.stdout?.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes > MAX_ANSWER_BYTES) ended.reject(tooMuch())
    })
    child.once('error', () => ended.reject(tooMuch()))
    child.once('close', () => {
      const [line] = Buffer.concat(chunks).toString().split('\n')
      if (line === undefined || line === '') ended.reject(tooMuch())
      else ended.resolve(JSON.parse(line))
    })
    // A process that ends before it has read says so by its end.
    child.stdin?.on('error', () => undefined)
    child.stdin?.write(`${JSON.stringify({ dir: this.#dir, scope: this.#scope, sql, limit })}\n`)
    try {
      const answered = await ended.promise
      if ('answer' in answered) return answered.answer
      const { kind, code, message, hint } = answered.error
      throw new ServoError(kind, code, message, hint === undefined ? {} : { hint })
    } finally {
      cancel()
      child.kill('SIGKILL')
    }
  }

  #start(): ChildProcess {
    const args = [`--max-old-space-size=${LIMITS.heapMb}`, SCRIPT]
    const child = spawn(process.execPath, args, { env: {}, stdio: ['pipe', 'pipe', 'ignore'] })
    this.#alive.add(child)
    child.once('close', () => this.#alive.delete(child))
    child.once('error', () => this.#alive.delete(child))
    return child
  }

  #takeSpare(): ChildProcess | undefined {
    const spare = this.#spare
    this.#spare = undefined
    this.#cancelSpare()
    return spare?.exitCode === null && spare.signalCode === null ? spare : undefined
  }

  #keepSpare(): void {
    if (this.#spare !== undefined || this.#isClosed || this.#running > 0) return
    const spare = this.#start()
    this.#spare = spare
    // It must not keep the server alive.
    spare.unref()
    this.#cancelSpare = this.#clock.after(SPARE_MS, () => {
      if (this.#spare === spare) this.#spare = undefined
      spare.kill('SIGKILL')
    })
  }
}

const tooMany = (): ServoError =>
  new ServoError('unavailable', 'too_many_queries', 'the server is busy with other queries', {
    hint: `Ask again in a moment. ${MAX_RUNNING} queries run at a time.`,
    facts: { retry_after_sec: 1 },
  })

const timedOut = (ms: number): ServoError =>
  new ServoError('unavailable', 'query_timeout', `the query took longer than ${ms / SECOND_MS} s, and was ended`, {
    hint: 'Ask for less, or give it longer with timeout_ms (at most 60000). servo query on the machine of the server has no such limit.',
  })

const tooMuch = (): ServoError =>
  new ServoError('invalid', 'query_too_large', 'the query needed more memory than a query may use, and was ended', {
    hint: 'Ask for fewer rows or columns at a time. servo query on the machine of the server has no such limit.',
  })
