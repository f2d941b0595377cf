import { ServoClient } from '../client/client.ts'
import { isServoError, ServoError } from '../lib/error.ts'
import type { HeldLease, Leader } from '../ports/lease.ts'
import type { Components } from '../server/components.ts'
import { note } from './output.ts'

/** A wait that is over sooner than this is not worth a word. */
const SAY_AFTER_MS = 300
const LOOK_EVERY_MS = 50
/** Projects may take long to load, but not this long. */
const MAX_WAIT_MS = 5 * 60_000
/** Between the end of one leader and the beginning of the next: one that waits for the lease claims it within a moment. */
const MAX_GAP_MS = 3_000

export interface Waiting {
  /** How long to wait for a leader that does not answer yet. */
  readonly maxWaitMs?: number
  /** Another command leads for a moment and answers nobody: wait for its end too. */
  readonly forCommands?: boolean
}

/** The leader of a project, once it answers; undefined when nobody leads. */
export async function findLeader(components: Components, waiting: Waiting = {}): Promise<ServoClient | undefined> {
  const { lease, clock } = components
  const { maxWaitMs = MAX_WAIT_MS, forCommands = false } = waiting
  const began = clock.monotonic()
  let said = false
  for (;;) {
    const leader = await lease.leader()
    if (leader === undefined || (leader.address === null && leader.term === 'brief' && !forCommands)) return undefined
    if (leader.address !== null) return await clientOf(components, leader.address)
    const waited = clock.monotonic() - began
    if (waited > maxWaitMs) throw tooLong(leader)
    if (waited > SAY_AFTER_MS && !said) {
      said = true
      note(`waiting for ${inWords(leader)}`)
    }
    await clock.sleep(LOOK_EVERY_MS)
  }
}

/** A leader that ends stops listening a moment before it gives up the lease. */
const LEAVING_MS = 5_000

/** Asks the leader; when nobody leads, takes the lease and does it here. Undefined when it was done here. */
export async function withLeader<T>(
  components: Components,
  ask: (leader: ServoClient) => Promise<T>,
  here: (lease: HeldLease, name: string) => Promise<void>,
): Promise<{ leader: ServoClient; answer: T } | undefined> {
  const { clock, lease, ulid } = components
  for (const began = clock.monotonic(); ; ) {
    const leader = await findLeader(components, { forCommands: true })
    if (leader !== undefined) {
      try {
        return { leader, answer: await ask(leader) }
      } catch (error) {
        // Nothing was done: it was not reached, or let nobody in any more.
        const isGone = isServoError(error, 'unavailable') && ['not_reached', 'closed'].includes(error.code)
        if (!isGone || clock.monotonic() - began > LEAVING_MS) throw error
      }
      await clock.sleep(LOOK_EVERY_MS)
      continue
    }
    const name = ulid()
    const held = await lease.claim({ name, term: 'brief' })
    if (!held.held) continue
    await here(held, name)
    return undefined
  }
}

/** Whoever leads after the leader that was spoken to before; undefined when nobody does for a while. */
export async function nextLeader(components: Components): Promise<ServoClient | undefined> {
  const { clock } = components
  for (const began = clock.monotonic(); ; ) {
    const leader = await findLeader(components, { forCommands: true })
    // One that has just ended is still on record for a moment.
    if (leader !== undefined && (await leader.isThere())) return leader
    if (clock.monotonic() - began > MAX_GAP_MS) return undefined
    await clock.sleep(LOOK_EVERY_MS)
  }
}

const inWords = ({ term, pid }: Leader): string =>
  term === 'brief' ? `another command (process ${pid})` : `the server that is starting (process ${pid})`

export async function clientOf({ secrets }: Pick<Components, 'secrets'>, url: string): Promise<ServoClient> {
  const known = await secrets.read()
  if (known === undefined) {
    throw new ServoError(
      'unavailable',
      'no_secrets',
      'the secrets of this project are gone, so its server cannot be spoken to',
      {
        hint: 'Stop the server and start it again: it makes new ones.',
      },
    )
  }
  return new ServoClient({ url, token: known.api_token })
}

const tooLong = (leader: Leader): ServoError =>
  new ServoError('unavailable', 'still_starting', `${inWords(leader)} does not answer yet`, {
    hint: `Look at what it prints, or stop it: kill ${leader.pid}`,
  })
