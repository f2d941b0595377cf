import type { LogEntry } from '../../contract/pipe.ts'
import { PrintedOutput } from '../printed-text.ts'
import type { ProcessSecrets } from './process-secrets.ts'

/** As much as the socket takes at once on most systems. */
const BATCH_CHARACTERS = 64 * 1024
/** Soon enough for a person who watches. */
const BATCH_MS = 50
/** So many entries are sent at once in that time; more than these wait for each other. */
const SENT_AT_ONCE = 20

/** Sends the log of one attempt: a few entries at once, so that a process that is killed leaves them, and many in batches. */
export class AttemptLog {
  readonly #now: () => number
  readonly #send: (entries: readonly LogEntry[]) => void
  readonly #secrets: ProcessSecrets
  /** Made when something is printed: many attempts print nothing. */
  #output: PrintedOutput | undefined
  #batch: LogEntry[] = []
  #characters = 0
  #timer: NodeJS.Timeout | undefined
  #windowBegan = 0
  #sentInWindow = 0
  #ended = false

  constructor(now: () => number, send: (entries: readonly LogEntry[]) => void, secrets: ProcessSecrets) {
    this.#now = now
    this.#send = send
    this.#secrets = secrets
  }

  /** Adds output of user code. Output after the end of the attempt is dropped. */
  print(stream: 'stdout' | 'stderr', chunk: string | Uint8Array, level?: LogEntry['level']): void {
    if (!this.#ended) this.#printed().write(stream, chunk, level)
  }

  /** Adds an entry that user code logged through its context. */
  add(entry: LogEntry): void {
    if (!this.#ended && this.#printed().admits(entry)) this.#push(entry)
  }

  /** The last entry has room even if the attempt printed all that it may. */
  end(last?: LogEntry): void {
    if (this.#ended) return
    this.#output?.end()
    if (last !== undefined) this.#push(last)
    this.#ended = true
    this.#flush()
  }

  #printed(): PrintedOutput {
    this.#output ??= new PrintedOutput((entry) => this.#push({ at: this.#now(), ...entry }), this.#secrets.text)
    return this.#output
  }

  #push(entry: LogEntry): void {
    this.#batch.push(entry)
    this.#characters += entry.text.length
    // The age is checked here as well as by the timer, which never fires while a body does not yield.
    if (Math.abs(entry.at - this.#windowBegan) >= BATCH_MS) {
      this.#windowBegan = entry.at
      this.#sentInWindow = 0
    }
    if (this.#sentInWindow++ < SENT_AT_ONCE || this.#characters >= BATCH_CHARACTERS) this.#flush()
    else this.#timer ??= setTimeout(() => this.#flush(), BATCH_MS).unref()
  }

  #flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#batch.length === 0) return
    const entries = this.#batch
    this.#batch = []
    this.#characters = 0
    this.#send(this.#secrets.entries(entries))
  }
}
