import { randomBytes } from 'node:crypto'
import { createInterface } from 'node:readline'
import { nodeDisk } from '../../../src/adapters/fs/disk.ts'
import { fsStore } from '../../../src/adapters/fs/object-store.ts'
import { writerThread } from '../../../src/adapters/fs/writer.ts'
import { memoryStore } from '../../../src/adapters/memory/object-store.ts'
import { systemClock } from '../../../src/adapters/system/clock.ts'
import { orchestration } from '../../../src/domain/index.ts'
import { Ledger } from '../../../src/engine/ledger/ledger.ts'
import type { Segment } from '../../../src/engine/ledger/segment.ts'
import { Compactor } from '../../../src/engine/publish/compactor.ts'
import { collectGarbage } from '../../../src/engine/publish/garbage.ts'
import { isServoError } from '../../../src/lib/error.ts'
import { ulidSource } from '../../../src/lib/ulid.ts'
import type { NewEvent } from '../../../src/model/event.ts'
import { reportFact, runFacts, tickFact, wipeFact } from '../../../src/testing/facts.ts'

/*
 * What a Servo process does all day, as fast as it can, until somebody kills it: several writers append through one
 * ledger, a compactor folds and publishes with limits so small that bases, merges and collections are always under way.
 * Speaks in lines: `acknowledged <event ids>` after an append has resolved and never before, `published <number>`,
 * `reopened <code>`, and `failed <why>` for what must not happen.
 */
export interface Workload {
  readonly dir: string
  readonly name: string
  readonly writers: number
  readonly graceMs: number
  /** Whether a compactor that was overtaken opens the state again; otherwise the process ends. */
  readonly reopen: boolean
}

const { dir, name, writers, graceMs, reopen }: Workload = JSON.parse(process.argv[2]!)
const scope = { tenant_id: 'acme', workspace_id: 'analytics' }
// Every other process keeps a journal.
const store = fsStore(dir, nodeDisk, writerThread({ journalRoot: process.pid % 2 === 0 ? dir : undefined, worthAThread: 1 }))
const announced: Segment[] = []
const ledger = new Ledger({
  store,
  scope,
  clock: systemClock,
  ulid: ulidSource(Date.now, randomBytes),
  source: name,
  // Every other segment is announced; the listing has to find the rest.
  onDurable: (segment) => void (Math.random() < 0.5 && announced.push(segment)),
})

/** Pipes are written synchronously, so a line that was begun before the kill is there, whole or cut off at its end. */
const say = (line: string): void => void process.stdout.write(`${line}\n`)

async function append(events: readonly NewEvent[]): Promise<void> {
  const { events: written } = await ledger.append(events)
  say(`acknowledged ${written.map((event) => event.event_id).join(' ')}`)
}

async function write(writer: number): Promise<void> {
  for (let count = 0; ; count += 1) {
    const unique = `${name}-${writer}-${count}`
    const outcome = count % 4 === 3 ? 'FAILED' : 'SUCCEEDED'
    for (const batch of runFacts(unique, { tasks: 1 + (count % 3), outcome }).batches) await append(batch)
    // Everybody speaks of the same partition, each of another part of its row.
    const shared = { asset: 'shared', partition: `${count % 2}` }
    await append([reportFact(unique, shared), tickFact(unique, Date.now())])
    await append([wipeFact(unique, shared)])
  }
}

/** A compactor that was overtaken, or whose files were collected because it did not know that yet, opens the state again. */
function mustReopen(error: unknown): error is Error & { code: string } {
  return isServoError(error) && ['fenced', 'publish_failed', 'file_missing'].includes(error.code)
}

const world = { scope, registry: orchestration, clock: systemClock }

async function compact(): Promise<void> {
  do {
    try {
      const compactor = await Compactor.open({ ...world, store, name, limits: { max_count: 2, max_rows: 60 } })
      for (let turn = 1; ; turn += 1) {
        await compactor.fold.apply(announced.splice(0))
        if (turn % 2 === 0) await compactor.catchUp()
        if ((await compactor.publish()) === 'published') say(`published ${compactor.manifest.number}`)
        if (turn % 3 === 0) await collectGarbage({ ...world, store, graceMs })
      }
    } catch (error) {
      if (!mustReopen(error)) throw error
      say(`reopened ${error.code}`)
    }
  } while (reopen)
}

/** Once through everything in memory, so that the first milliseconds of a life are not spent compiling. */
async function warmUp(): Promise<void> {
  const memory = memoryStore()
  const compactor = await Compactor.open({ ...world, store: memory, name })
  const warm = new Ledger({ ...world, store: memory, ulid: ulidSource(Date.now, randomBytes), source: name })
  for (const batch of runFacts('warm').batches) {
    await warm.append([...batch, reportFact(`warm-${batch.length}`)])
    await compactor.catchUp()
    await compactor.publish({ kind: batch.length % 2 === 0 ? 'base' : 'delta' })
  }
  await collectGarbage({ ...world, store: memory, graceMs: 0 })
  await Compactor.open({ ...world, store: memory, name })
}

// Starting takes longer than the life that follows, so processes are started ahead and told when to begin.
await warmUp()
say('ready')
await new Promise((resolve) => createInterface(process.stdin).once('line', resolve))
try {
  await Promise.race([compact(), ...Array.from({ length: writers }, (_, writer) => write(writer))])
  process.exit(0)
} catch (error) {
  say(`failed ${error instanceof Error ? error.stack : String(error)}`.replaceAll('\n', ' | '))
  process.exit(1)
}
