import { parentPort, workerData } from 'node:worker_threads'
import { nodeDisk } from './disk.ts'
import { blockingDisk, Journal } from './journal/journal.ts'
import { failedCall, writeObject } from './journal/write-object.ts'
import type { ThreadAnswer, ThreadData, ThreadOrder } from './writer.ts'

/*
 * Writes one object after the other with blocking calls: they hold up nothing else here. See writer.ts for why. Whatever can wait, such as
 * opening a journal and syncing what it has, is done beside that with calls that do not block.
 */
const { journalRoot }: ThreadData = workerData ?? {}

/** Longer than between two segments of a workspace at work. */
const IDLE_MS = 1_000
/** Where there can be no journal, perhaps because the disk is full, there may be one later. */
const REOPEN_MS = 60_000

let journal: Journal | undefined
/** What must be finished before something else may be done with the journal. */
let upkeep: Promise<void> = Promise.resolve()
let mayOpenAt = 0
let reported = 0

const tell = (answer: ThreadAnswer): void => parentPort?.postMessage(answer)

const idle = setTimeout(() => beside(settle), IDLE_MS)

function beside(work: () => Promise<void>): void {
  upkeep = upkeep
    .then(work)
    .catch((error: unknown) => tell({ type: 'trouble', failed: failedCall(error) }))
    .then(report)
}

/** Tells up to which entry nothing is in the journal alone. */
function report(): void {
  const settled = journal?.settledUpTo ?? Number.POSITIVE_INFINITY
  if (settled === reported) return
  reported = settled
  tell({ type: 'settled', upTo: settled })
}

async function open(root: string): Promise<void> {
  journal ??= await Journal.open(root, {
    disk: nodeDisk,
    blocking: blockingDisk,
    onTrouble: (error) => tell({ type: 'trouble', failed: failedCall(error) }),
  })
}

async function settle(): Promise<void> {
  await journal?.settle()
}

async function close(): Promise<void> {
  const closing = journal
  journal = undefined
  await closing?.close()
  // Before another one begins to count.
  report()
}

/** A journal is opened for whoever writes, and one that takes no more entries is replaced. */
function keepJournal(root: string): void {
  if (journal !== undefined && !journal.isBroken) return
  if (performance.now() < mayOpenAt) return
  mayOpenAt = performance.now() + REOPEN_MS
  beside(async () => {
    await close()
    await open(root)
  })
}

function handle(order: ThreadOrder): void {
  if (order.type === 'write') {
    writeObject(order, journal, (written) => tell({ type: 'outcome', ...written }))
    if (journalRoot === undefined) return
    keepJournal(journalRoot)
    idle.refresh()
    return
  }
  if (order.type === 'close') mayOpenAt = 0
  beside(order.type === 'close' ? close : settle)
  void upkeep.then(() => tell({ type: 'done' }))
}

parentPort?.on('message', handle)
