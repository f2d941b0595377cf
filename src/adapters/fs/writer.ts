import path from 'node:path'
import { Worker } from 'node:worker_threads'

/** An object to be created under `target`, by way of `temp`, in the open folder `folder`. */
export interface WriteOrder {
  readonly temp: string
  readonly target: string
  /** The path in the store. */
  readonly path: string
  readonly bytes: Uint8Array
  readonly folder: number
}

/**
 * `not_written`: it can be done again, and what stood in the way shows then. Should the thread have ended after giving the object
 * its name, the second try finds it there, whole and synced, and syncs its folder.
 */
export type WriteOutcome = 'written' | 'not_written' | { readonly error: Error }

export interface ObjectWriter {
  /** Undefined when it cannot begin at once. */
  write(order: WriteOrder): Promise<WriteOutcome> | undefined
  /** Called before the object at `target` is deleted or replaced: a journal must not bring it back. Undefined if none has it. */
  settled(target: string): Promise<void> | undefined
  /** Leaves nothing that only a journal has. More can be written. */
  close(): Promise<void>
}

/** What the thread is told when it starts. */
export interface ThreadData {
  /** The folder of the store, if it is to have a journal. */
  readonly journalRoot?: string | undefined
}

export type ThreadOrder = ({ readonly type: 'write' } & WriteOrder) | { readonly type: 'settle' | 'close' }

export type ThreadAnswer =
  | {
      readonly type: 'outcome'
      readonly outcome: 'written' | 'not_written' | { readonly lost: FailedCall }
      readonly entry?: number
    }
  /** Entries up to this one are not in the journal alone. */
  | { readonly type: 'settled'; readonly upTo: number }
  /** A settle or close has ended; they are answered in order. */
  | { readonly type: 'done' }
  | { readonly type: 'trouble'; readonly failed: FailedCall }

/** An error on its way between threads, which leaves its code behind. */
export interface FailedCall {
  readonly message: string
  readonly code: string | undefined
}

const errorOf = ({ message, code }: FailedCall): Error => Object.assign(new Error(message), code !== undefined && { code })

export interface WriterThreadOptions extends ThreadData {
  /** How many writes are wanted before the thread is started. */
  readonly worthAThread?: number
  /** Called when objects could not be synced. The journal keeps their bytes, and syncing is tried again. */
  readonly onTrouble?: (error: unknown) => void
}

type ThreadState =
  | { readonly kind: 'absent' | 'starting' | 'ended' }
  | { readonly kind: 'ready'; readonly thread: Worker }
  | {
      readonly kind: 'writing'
      readonly thread: Worker
      readonly answered: PromiseWithResolvers<WriteOutcome>
      readonly target: string
    }

/** A process that writes less than this is better off without: a thread takes some 30 ms to start. */
const WORTH_A_THREAD = 100
/** Copied to the thread. What is larger takes so long to sync that hops do not matter. */
const MAX_BYTES = 1 << 20

/**
 * A thread that writes whole objects, one at a time. Done the usual way a durable create is four calls in libuv's threads,
 * each of which begins and ends with waiting until this process looks up from what it is doing; in a busy one that
 * was four fifths of the time between a fact and its being durable. A caller that finds the thread busy writes the usual way.
 * The thread is absent until enough is written, then starts, and is ready and writing by turns until it ends.
 *
 * With a `journalRoot` the thread also keeps a journal there (journal/journal.ts), and an object costs one sync instead of two.
 */
export function writerThread({
  journalRoot,
  onTrouble,
  worthAThread = WORTH_A_THREAD,
}: WriterThreadOptions = {}): ObjectWriter {
  let state: ThreadState = { kind: 'absent' }
  let wanted = 0
  /** The number of the entry of each object that only the journal may have. */
  const entries = new Map<string, number>()
  const asked: PromiseWithResolvers<void>[] = []

  function start(): void {
    const file = path.join(import.meta.dirname, `writer-thread${path.extname(import.meta.filename)}`)
    const workerData: ThreadData = { journalRoot }
    // Without the options of this process, which may be a debugger's or a test runner's.
    const thread = new Worker(file, { execArgv: [], name: 'servo-writer', workerData })
    state = { kind: 'starting' }
    thread.on('online', () => {
      state = { kind: 'ready', thread }
    })
    thread.on('message', (answer: ThreadAnswer) => hear(answer))
    // The error must not end the process; the handler of the exit below deals with it.
    thread.on('error', () => undefined)
    thread.on('exit', () => {
      outcome('not_written')
      state = { kind: 'ended' }
      entries.clear()
      for (const each of asked.splice(0)) each.resolve()
    })
    // Nor must it keep the process alive. Last, because listening to it does.
    thread.unref()
  }

  function hear(answer: ThreadAnswer): void {
    if (answer.type === 'outcome')
      outcome(typeof answer.outcome === 'object' ? { error: errorOf(answer.outcome.lost) } : answer.outcome, answer.entry)
    else if (answer.type === 'settled') forget(answer.upTo)
    else if (answer.type === 'trouble') onTrouble?.(errorOf(answer.failed))
    else {
      asked.shift()?.resolve()
      rest()
    }
  }

  function outcome(answer: WriteOutcome, entry?: number): void {
    if (state.kind !== 'writing') return
    const { thread, answered, target } = state
    if (entry !== undefined) entries.set(target, entry)
    state = { kind: 'ready', thread }
    rest()
    answered.resolve(answer)
  }

  function forget(upTo: number): void {
    // In order of their numbers, because a Map remembers insertion.
    for (const [target, entry] of entries) {
      if (entry > upTo) break
      entries.delete(target)
    }
  }

  /** While nobody waits for the thread, it does not keep the process alive. */
  function rest(): void {
    if (state.kind === 'ready' && asked.length === 0) state.thread.unref()
  }

  async function ask(type: 'settle' | 'close'): Promise<void> {
    if (state.kind !== 'ready' && state.kind !== 'writing') return
    const answered = Promise.withResolvers<void>()
    asked.push(answered)
    state.thread.ref()
    state.thread.postMessage({ type } satisfies ThreadOrder)
    await answered.promise
  }

  return {
    write(order) {
      wanted += 1
      if (wanted === worthAThread) start()
      if (state.kind !== 'ready' || order.bytes.length > MAX_BYTES) return undefined
      const { thread } = state
      const answered = Promise.withResolvers<WriteOutcome>()
      state = { kind: 'writing', thread, answered, target: order.target }
      // The caller waits for it now, and a process that ends meanwhile would end in the middle.
      thread.ref()
      thread.postMessage({ type: 'write', ...order } satisfies ThreadOrder)
      return answered.promise
    },

    settled: (target) => (entries.has(target) ? ask('settle') : undefined),

    close: () => ask('close'),
  }
}
