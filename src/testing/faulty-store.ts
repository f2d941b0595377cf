import { ServoError } from '../lib/error.ts'
import type { ListedObject, ListOptions, ObjectStore } from '../ports/object-store.ts'
import type { StoreMethod, StoreRequest } from './counting-store.ts'

/** What happens to one request. Nothing set means that it is carried out in peace. */
interface Fault {
  /** The request takes this long to reach the store. */
  delayMs?: number
  /** The answer takes this long to come back; the effect is there before the caller knows. */
  answerDelayMs?: number
  /**
   * - `lost`: the request does not reach the store, and the caller gets an error.
   * - `unanswered`: it reaches the store, and the caller gets an error. A listing breaks off after its first object.
   * - `repeated`: a client library sends it twice because the first answer was lost: a `create` that made the object
   *   gets `exists` for its own object. Other requests can be repeated unnoticed.
   */
  outcome?: 'lost' | 'unanswered' | 'repeated'
}

/** Decides the fate of each request; called once for each, in order. */
export type FaultPlan = (request: StoreRequest) => Fault | undefined

/** Waits in the time of the simulation. */
export type Sleep = (ms: number) => Promise<void>

/** A store on which things go wrong as planned, and only then. Delays need `sleep`: there is no clock in here. */
export function faultyStore(inner: ObjectStore, plan: FaultPlan, sleep: Sleep = noClock): ObjectStore {
  async function request<T>(method: StoreMethod, path: string, carryOut: (fault: Fault) => Promise<T>): Promise<T> {
    const fault = await setOut(method, path)
    const answer = await carryOut(fault)
    if (fault.answerDelayMs !== undefined) await sleep(fault.answerDelayMs)
    if (fault.outcome === 'unanswered') throw injectedFault('the answer was lost', method, path)
    return answer
  }

  async function setOut(method: StoreMethod, path: string): Promise<Fault> {
    const fault = plan({ method, path }) ?? {}
    if (fault.delayMs !== undefined) await sleep(fault.delayMs)
    if (fault.outcome === 'lost') throw injectedFault('the request was lost', method, path)
    return fault
  }

  async function* listing(prefix: string, options: ListOptions | undefined): AsyncGenerator<ListedObject> {
    const fault = await setOut('list', prefix)
    if (fault.answerDelayMs !== undefined) await sleep(fault.answerDelayMs)
    for await (const object of inner.list(prefix, options)) {
      yield object
      if (fault.outcome === 'unanswered') break
    }
    if (fault.outcome === 'unanswered') throw injectedFault('the listing broke off', 'list', prefix)
  }

  async function* folders(prefix: string): AsyncGenerator<string> {
    const fault = await setOut('folders', prefix)
    if (fault.answerDelayMs !== undefined) await sleep(fault.answerDelayMs)
    if (fault.outcome === 'unanswered') throw injectedFault('the answer was lost', 'folders', prefix)
    yield* inner.folders(prefix)
  }

  return {
    create: (path, bytes) =>
      request('create', path, async (fault) => {
        const first = await inner.create(path, bytes)
        return fault.outcome === 'repeated' ? await inner.create(path, bytes) : first
      }),
    put: (path, bytes) => request('put', path, () => inner.put(path, bytes)),
    get: (path) => request('get', path, () => inner.get(path)),
    getRange: (path, start, length) => request('getRange', path, () => inner.getRange(path, start, length)),
    size: (path) => request('size', path, () => inner.size(path)),
    list: listing,
    folders,
    delete: (path) => request('delete', path, () => inner.delete(path)),
  }
}

/** One step of a script: the `nth` request (by default the first) by this method, under this prefix, meets this fault. */
export interface ScriptedFault extends Fault {
  method?: StoreMethod
  /** The path or its prefix; by default every path. */
  path?: string
  nth?: number
}

/** A plan that is written out: each step happens once, to the nth request that fits it, and no other. */
export function scriptedFaults(steps: readonly ScriptedFault[]): FaultPlan {
  const left = steps.map((step) => ({ step, waits: step.nth ?? 1 }))
  return ({ method, path }) => {
    const due: Fault[] = []
    for (const entry of left) {
      const fits = (entry.step.method ?? method) === method && path.startsWith(entry.step.path ?? '')
      if (fits && --entry.waits === 0) due.push(entry.step)
    }
    return due.length === 0 ? undefined : Object.assign({}, ...due)
  }
}

export interface FaultChances {
  /** How likely each outcome is, from 0 to 1; together at most 1. */
  lost?: number
  unanswered?: number
  repeated?: number
  /** How likely a delay is, before and, independently, after the effect. */
  delayed?: number
  /** The longest delay. Delays are whole milliseconds from 1. */
  maxDelayMs?: number
}

/** A plan thrown with dice that fall the same way for the same seed. */
export function seededFaults(seed: number, chances: FaultChances): FaultPlan {
  const { lost = 0, unanswered = 0, repeated = 0, delayed = 0, maxDelayMs = 1_000 } = chances
  const roll = dice(seed)
  return () => {
    // Always the same number of throws, so that changing one chance leaves the others where they were.
    const [outcome, before, beforeMs, after, afterMs] = [roll(), roll(), roll(), roll(), roll()]
    const fault: Fault = {}
    if (before < delayed) fault.delayMs = 1 + Math.floor(beforeMs * maxDelayMs)
    if (after < delayed) fault.answerDelayMs = 1 + Math.floor(afterMs * maxDelayMs)
    if (outcome < lost) fault.outcome = 'lost'
    else if (outcome < lost + unanswered) fault.outcome = 'unanswered'
    else if (outcome < lost + unanswered + repeated) fault.outcome = 'repeated'
    return fault
  }
}

/** Numbers from 0 to 1, the same for the same seed: mulberry32, small and good enough for weather. */
function dice(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

function injectedFault(what: string, method: StoreMethod, path: string): ServoError {
  return new ServoError('unavailable', 'injected_fault', `${method} ${path}: ${what}, on purpose`, { facts: { method, path } })
}

function noClock(): Promise<void> {
  throw new ServoError('bug', 'no_clock', 'this plan delays requests, but the faulty store was given no way to wait', {
    hint: 'Pass a sleep function as the third argument of faultyStore.',
  })
}
