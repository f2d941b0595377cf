import { randomBytes } from 'node:crypto'
import { statfs } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { fileCopier } from '../adapters/fs/copy/copy-files.ts'
import { nodeDisk } from '../adapters/fs/disk.ts'
import { explainFailure } from '../adapters/fs/failure.ts'
import { fsLease } from '../adapters/fs/lease.ts'
import { fsNotifier } from '../adapters/fs/notifier.ts'
import { fsStore } from '../adapters/fs/object-store.ts'
import { fsSecrets } from '../adapters/fs/secrets.ts'
import { makeStateFolder } from '../adapters/fs/state-folder.ts'
import { writerThread } from '../adapters/fs/writer.ts'
import { MemoryTaskQueue } from '../adapters/memory/task-queue.ts'
import { systemClock } from '../adapters/system/clock.ts'
import { type Room, roomOn } from '../adapters/system/disk-room.ts'
import { giveMemoryBack, makeRoom } from '../adapters/system/memory.ts'
import type { FileCopier } from '../engine/backup/backup-target.ts'
import { Paths, type Scope } from '../engine/paths.ts'
import type { Encoder } from '../engine/publish/encoder.ts'
import { ServoError } from '../lib/error.ts'
import { HOUR_MS } from '../lib/time.ts'
import { type UlidSource, ulidSource } from '../lib/ulid.ts'
import type { AlarmClock } from '../ports/clock.ts'
import type { Lease } from '../ports/lease.ts'
import type { Notifier } from '../ports/notifier.ts'
import type { ObjectStore } from '../ports/object-store.ts'
import type { Secrets } from '../ports/secrets.ts'
import type { TaskQueue } from '../ports/task-queue.ts'
import type { Sql } from './sql-rows.ts'

/** Everything of the outside world that a server is made of. Its parts get the outside world from here and from nowhere else. */
export interface Components {
  readonly scope: Scope
  readonly store: ObjectStore
  readonly clock: AlarmClock
  readonly ulid: UlidSource
  /** Unpredictable bytes. */
  readonly random: (length: number) => Uint8Array
  readonly secrets: Secrets
  readonly lease: Lease
  readonly notifier: Notifier
  readonly queue: TaskQueue
  readonly encoder: Encoder
  /** Queries the newest published tables. */
  readonly sql: Sql
  /** The longest time between two listings of the ledger, when the notifier may miss segments. */
  readonly lookEveryMs?: number
  /** How much room there is for more. Absent where nobody knows. */
  readonly room?: () => Promise<Room>
  /** When values are removed that need not be kept. */
  readonly retentionTiming?: RetentionTiming
  /** Gives memory back that a busy time needed; called when it is over. */
  readonly rest?: () => void
  /** Called by whoever has led, when nothing more is to be written: files are in the state in which they shall stay. */
  readonly settle?: () => Promise<void>
  /** Has `call` told of trouble with the store that no request of ours meets. */
  readonly onStoreTrouble?: (call: (error: Error) => void) => void
  /** Collects young garbage, shortly before much must be done at once. */
  readonly makeRoom?: () => void
}

export interface RetentionTiming {
  /** How long a pass waits for more to happen. */
  readonly delayMs?: number
  /** What was pushed out more recently stays, for readers that have just begun. Longer than any query takes. */
  readonly graceMs?: number
}

/** The components of a folder on this machine. */
export interface LocalComponents extends Components {
  /** The folder itself. */
  readonly servoDir: string
  /** The folder in which workers keep values. */
  readonly dataDir: string
  /** Removes temporary files that killed processes left anywhere in the folder. */
  readonly sweepTemp: () => Promise<void>
}

/** One machine, one workspace. */
const LOCAL: Scope = { tenant_id: 'default', workspace_id: 'default' }

/**
 * Longer than any process takes to write one file. A process that was suspended, or whose machine slept, may find its file gone
 * and writes it again.
 */
const TEMP_MS = 6 * HOUR_MS

/** The file that holds the secrets of a folder. */
export const secretsFile = (servoDir: string): string => join(servoDir, 'local', 'secrets.json')

/** The components of a folder: the embedded default of every port. */
export function localComponents(servoDir: string, scope: Scope = LOCAL): LocalComponents {
  const dir = resolve(servoDir)
  const paths = new Paths(scope)
  const [dataDir, leaseDir] = [join(dir, paths.root), join(dir, paths.root, 'lease')]
  // The folder is made when the lease is claimed.
  let tell: (error: Error) => void = () => undefined
  const onTrouble = (error: unknown): void => tell(explainFailure(error, { verb: 'sync', path: '', dir }))
  const store = fsStore(dir, nodeDisk, writerThread({ journalRoot: dir, onTrouble }), false)
  const clock = systemClock
  const random = (length: number): Uint8Array => randomBytes(length)
  const encoder = encoderOnDemand()
  const { SERVO_LEASE_MS, SERVO_LOOK_MS, SERVO_RETENTION_MS, SERVO_WATCH } = process.env
  const lease = fsLease(leaseDir, {
    clock,
    ...(SERVO_LEASE_MS !== undefined && { periodMs: milliseconds('SERVO_LEASE_MS', SERVO_LEASE_MS) }),
  })
  return {
    scope,
    store,
    clock,
    ulid: ulidSource(clock.now, random),
    random,
    secrets: fsSecrets(secretsFile(dir)),
    lease: {
      ...lease,
      // Whoever leads writes, and nothing is written before.
      async claim(candidate) {
        makeStateFolder(dir)
        const claimed = await lease.claim(candidate)
        // What a killed leader left is with the kernel, so nobody waits for it. What cannot be synced now stays for the next leader.
        if (claimed.held) void store.takeJournals().catch(onTrouble)
        return claimed
      },
    },
    notifier: fsNotifier(join(dir, paths.ledger), {
      clock,
      ...(isOff('SERVO_WATCH', SERVO_WATCH) && { watch: 'off' as const }),
    }),
    // Rebuilt from the state at every start.
    queue: new MemoryTaskQueue(clock),
    encoder,
    makeRoom,
    onStoreTrouble(call) {
      tell = call
    },
    settle: () => store.close(),
    rest() {
      encoder.rest?.()
      giveMemoryBack()
    },
    sql: async (sql) => (await import('./sql-rows.ts')).rowsOfNewest(dir, store, scope, sql),
    room: async () => roomOn(dir, await statfs(dir)),
    servoDir: dir,
    dataDir,
    async sweepTemp() {
      for (const each of [dir, dataDir, leaseDir]) await fsStore(each).sweepTemp(TEMP_MS)
    },
    ...(SERVO_LOOK_MS !== undefined && { lookEveryMs: milliseconds('SERVO_LOOK_MS', SERVO_LOOK_MS) }),
    ...(SERVO_RETENTION_MS !== undefined && { retentionTiming: timingOf(SERVO_RETENTION_MS) }),
  }
}

/** Loads what encodes Parquet with the first publish: commands that ask a server publish nothing. */
function encoderOnDemand(): Encoder {
  let encoder: Promise<Encoder> | undefined
  const loaded = (): Promise<Encoder> => {
    encoder ??= import('../engine/publish/encoder.ts').then(({ encoderThread }) => encoderThread())
    return encoder
  }
  return {
    encode: async (copy) => (await loaded()).encode(copy),
    merge: async (files) => (await loaded()).merge(files),
    rest: () => void encoder?.then((each) => each.rest?.()),
  }
}

/** What a command needs that asks a server elsewhere, and has no folder. */
export function folderless(): Pick<Components, 'clock' | 'ulid'> {
  const clock = systemClock
  return { clock, ulid: ulidSource(clock.now, (length) => randomBytes(length)) }
}

/** Copies files between two folders, and lets one process at a time work on a folder that is no state: for backups. */
export const copierOf = (from: string, to: string): FileCopier => fileCopier(resolve(from), resolve(to))
/** Removes the temporary files in a folder in which no other process writes. */
export const removeTemp = async (dir: string): Promise<void> => void (await fsStore(dir).sweepTemp(0))
export const leaseOf = (dir: string): Lease => fsLease(join(dir, 'lease'), { clock: systemClock })

/** The object store of a folder, for commands that read it without leading. */
export const folderStore = (dir: string): ObjectStore => fsStore(dir)

function milliseconds(name: string, text: string): number {
  const value = Number(text)
  if (Number.isInteger(value) && value >= 10 && value <= 3_600_000) return value
  throw badSetting(name, text, 'milliseconds from 10 to 3600000')
}

/** For tests, which cannot wait for a quarter of an hour. */
function timingOf(text: string): RetentionTiming {
  const ms = milliseconds('SERVO_RETENTION_MS', text)
  return { delayMs: ms, graceMs: ms }
}

function isOff(name: string, text = ''): boolean {
  if (text !== '' && text !== 'off') throw badSetting(name, text, 'off')
  return text === 'off'
}

function badSetting(name: string, text: string, allowed: string): ServoError {
  return new ServoError('invalid', 'bad_setting', `${name} cannot be ${JSON.stringify(text.slice(0, 40))}`, {
    hint: `Set ${name} to ${allowed}, or unset it.`,
  })
}
