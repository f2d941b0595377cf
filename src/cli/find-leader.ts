import { ServoClient } from '../client/client.ts'
import { isServoError, ServoError } from '../lib/error.ts'
import type { HeldLease, Leader } from '../ports/lease.ts'
import type { Components } from '../server/components.ts'
import { note } from './output.ts'

/** A shorter wait is not mentioned. */
export const SAY_AFTER_MS = 300
/** A command that waits for a leader looks at the lease this often: a user does not notice such a delay. */
export const LOOK_AT_LEASE_MS = 50
/** Projects may take long to load, but not this long. */
const MAX_WAIT_MS = 5 * 60_000
/** A leader that has not answered for this long is challenged for a sign of life: it may be starting, stopped or gone. */
export const ASK_FOR_SIGN_MS = 1_000
/** A command that could do without the leader waits only this long for a leader that has an address and does not answer. */
const SILENT_MS = 3_000
/** A leader that gives signs of life and has not answered at its address for this long cannot be reached from here. */
const UNREACHABLE_MS = 10_000
/** Time between two leaders: a candidate claims a free lease within a moment. */
const MAX_GAP_MS = 3_000

/** A request whose answer got lost is sent again for at most this long. */
const UNKNOWN_MS = 30_000

export interface LeaderWait {
  /** How long to wait for a leader that does not answer yet. */
  readonly maxWaitMs?: number
  /** Wait also for another command that leads for a moment and answers no requests. */
  readonly forCommands?: boolean
  /** Tells the user, once, which leader the command waits for. */
  readonly say?: (leader: Leader) => void
}

/** The leader of a project, once it answers; undefined when there is none. */
export async function findLeader(components: Components, waiting: LeaderWait = {}): Promise<ServoClient | undefined> {
  const { lease, clock } = components
  const { maxWaitMs = MAX_WAIT_MS, forCommands = false, say = sayOnce() } = waiting
  for (const began = clock.monotonic(); ; ) {
    const leader = await lease.leader()
    if (leader === undefined || (leader.address === null && leader.term === 'brief' && !forCommands)) return undefined
    const client = leader.address === null ? undefined : await clientOf(components, leader.address)
    if (await client?.isThere(leader.name)) return client
    const waited = clock.monotonic() - began
    if (waited > SAY_AFTER_MS) say(leader)
    if (waited > (client === undefined ? maxWaitMs : Math.min(maxWaitMs, SILENT_MS))) throw noAnswerYet(leader)
    await clock.sleep(LOOK_AT_LEASE_MS)
  }
}

/** Sends the request to the leader. Without one, claims the lease and does the work here. */
export async function withLeader<T, H>(
  components: Components,
  ask: (leader: ServoClient) => Promise<T>,
  here: (lease: HeldLease, name: string) => Promise<H>,
  { isRepeatable = false }: { isRepeatable?: boolean } = {},
): Promise<{ leader: ServoClient; answer: T } | { doneHere: H }> {
  const { clock, lease, ulid } = components
  const say = sayOnce()
  for (const began = clock.monotonic(); ; ) {
    const leader = await findLeader(components, { forCommands: true, maxWaitMs: ASK_FOR_SIGN_MS, say }).catch(unlessSilent)
    if (leader !== undefined) {
      try {
        return { leader, answer: await ask(leader) }
      } catch (error) {
        if (!isServoError(error, 'unavailable')) throw error
        // Retry if the leader did nothing, because it was not reached or is closing, or if repeating the request does no harm.
        const isUndone = ['not_reached', 'closed'].includes(error.code)
        const isUnknown = error.code === 'no_answer' && isRepeatable && clock.monotonic() - began < UNKNOWN_MS
        if (!isUndone && !isUnknown) throw error
      }
      await clock.sleep(LOOK_AT_LEASE_MS)
      continue
    }
    // There is no leader, or it is silent. The claim challenges a silent leader, which keeps the lease if it gives a sign of life.
    const name = ulid()
    const held = await lease.claim({ name, term: 'brief' })
    if (held.held) return { doneHere: await here(held, name) }
    const waited = clock.monotonic() - began
    if (held.leader.address !== null && waited > UNREACHABLE_MS) throw unreachable(held.leader)
    if (waited > MAX_WAIT_MS) throw noAnswerYet(held.leader)
  }
}

/** The leader that follows the previous one; undefined when none comes within a few seconds. */
export async function nextLeader(components: Components, maxWaitMs?: number): Promise<ServoClient | undefined> {
  const { clock } = components
  for (const began = clock.monotonic(); clock.monotonic() - began < MAX_GAP_MS; ) {
    const wait = { forCommands: true, ...(maxWaitMs !== undefined && { maxWaitMs }) }
    const leader = await findLeader(components, wait).catch(unlessSilent)
    if (leader !== undefined) return leader
    await clock.sleep(LOOK_AT_LEASE_MS)
  }
  return undefined
}

function sayOnce(): (leader: Leader) => void {
  let said = false
  return (leader) => {
    if (!said) note(`waiting for ${inWords(leader)}`)
    said = true
  }
}

function inWords({ term, pid, address }: Leader): string {
  if (address !== null) return `process ${pid}, which runs this project and does not answer`
  return term === 'brief' ? `another command (process ${pid})` : `the server that is starting (process ${pid})`
}

export async function clientOf({ secrets }: Pick<Components, 'secrets'>, url: string): Promise<ServoClient> {
  const known = await secrets.read()
  if (known !== undefined) return new ServoClient({ url, token: known.api_token, retries: 0, waitSec: PATIENCE_SEC })
  throw new ServoError(
    'unavailable',
    'no_secrets',
    'the secrets of this project are missing, so this command cannot authenticate to the server',
    {
      hint: 'Restart the server: it creates new ones.',
    },
  )
}

/** A person would rather wait for a slow disk than try again. Below the time after which a client gives up. */
export const PATIENCE_SEC = 10

const NO_ANSWER_YET = 'no_answer_yet'

export function unlessSilent(error: unknown): undefined {
  if (!isServoError(error, 'unavailable') || error.code !== NO_ANSWER_YET) throw error
}

const noAnswerYet = (leader: Leader): ServoError =>
  new ServoError('unavailable', NO_ANSWER_YET, `no answer yet from ${inWords(leader)}`, {
    hint: `Check its output, or stop it: kill ${leader.pid}`,
  })

const unreachable = ({ pid, host, address }: Leader): ServoError =>
  new ServoError(
    'unavailable',
    'leader_unreachable',
    `the server of this project (process ${pid} on ${host}) is alive but cannot be reached at ${address}`,
    { hint: 'Run this command where the server runs, or in a container that shares its network. Nothing has changed.' },
  )
