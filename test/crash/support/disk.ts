import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { fsStore } from '../../../src/adapters/fs/object-store.ts'
import { memoryStore } from '../../../src/adapters/memory/object-store.ts'
import { systemClock } from '../../../src/adapters/system/clock.ts'
import { orchestration } from '../../../src/domain/index.ts'
import { TaskFinished } from '../../../src/domain/tasks/task-finished.event.ts'
import { verify } from '../../../src/engine/check/verify.ts'
import { Ledger } from '../../../src/engine/ledger/ledger.ts'
import { Compactor } from '../../../src/engine/publish/compactor.ts'
import { isServoError } from '../../../src/lib/error.ts'
import { ulidSource } from '../../../src/lib/ulid.ts'
import type { NewEvent } from '../../../src/model/event.ts'
import { reportFact, runFacts } from '../../../src/testing/facts.ts'

/*
 * Runs with a small disk of its own mounted at the folder it is given: fills it, frees it, makes it read-only and
 * writable again, and reports as JSON what a ledger and a compactor on it had to say.
 */
const dir = process.argv[2]!
const world = { scope: { tenant_id: 'acme', workspace_id: 'analytics' }, registry: orchestration, clock: systemClock }
const store = fsStore(dir)
const ledger = new Ledger({
  ...world,
  store,
  ulid: ulidSource(Date.now, randomBytes),
  source: 'disk',
  limits: { maxAttempts: 2 },
})
const compactor = await Compactor.open({ ...world, store, name: 'disk' })
const acknowledged: string[] = []

/** What an append or publish came to: `ok`, or the kind and code of its error. */
async function attempt(work: () => Promise<unknown>): Promise<string> {
  try {
    await work()
    return 'ok'
  } catch (error) {
    return isServoError(error)
      ? `${error.kind} ${error.code}${error.hint === undefined ? '' : ', with a hint'}`
      : `unexpected ${String(error)}`
  }
}

async function append(event: NewEvent): Promise<void> {
  const { events } = await ledger.append([event])
  acknowledged.push(...events.map(({ event_id }) => event_id))
}

async function publish(): Promise<void> {
  await compactor.catchUp()
  // One that failed is finished first; what was folded since comes after it.
  while ((await compactor.publish({ kind: 'base' })) === 'published');
}

/** 100 kB that nothing compresses in the ledger. */
const large = (): NewEvent => {
  const finish = runFacts('large', { tasks: 1 }).batches.at(-1)![0]!
  return { definition: TaskFinished, payload: { ...(finish.payload as object), output: randomBytes(50_000).toString('hex') } }
}

/** A tool of the system, not of ours, whatever looks for those in package.json. */
const MOUNT = 'mount'
const remount = (option: string): void => void execFileSync(MOUNT, ['-o', `remount,${option}`, dir])

const report: Record<string, unknown> = { before: [await attempt(() => append(reportFact('first'))), await attempt(publish)] }
let outcome = 'ok'
while (outcome === 'ok') outcome = await attempt(() => append(large()))
report['full'] = outcome
report['fullAgain'] = await attempt(() => append(large()))
report['temporaryFiles'] = readdirSync(`${dir}/.tmp`)
// Publishing may find room for some of its files, never for half of one.
report['publishWhileFull'] = await attempt(publish)

remount('size=64m')
report['withRoom'] = [await attempt(() => append(reportFact('room'))), await attempt(publish)]

remount('ro')
report['readOnly'] = [await attempt(() => append(reportFact('ro'))), await attempt(publish)]
await compactor.fold.apply([])
remount('rw')
report['writableAgain'] = [await attempt(() => append(reportFact('rw'))), await attempt(publish)]

const { ok, problems, unfolded, events } = await verify({ ...world, store, scratch: memoryStore() })
report['verify'] = { ok, problems, unfolded }
// Every refused append wrote nothing.
report['unacknowledged'] = events - acknowledged.length
console.log(JSON.stringify(report))
