import { z } from 'zod'
import type { Envelope } from './envelope.ts'
import type { KeyPart, Rows } from './rows.ts'
import type { Table } from './table.ts'

/**
 * What became of an event when it was folded. A worker is answered from this, so every way of not applying has a name.
 * - `applied`: it changed rows.
 * - `duplicate`: the same fact was there already.
 * - `ignored`: it came too late or names something that is over; `reason` has which.
 * - `parked`: something it depends on has not been seen; it is kept and tried again when `on` changes.
 */
export type Verdict =
  | { readonly kind: 'applied' }
  | { readonly kind: 'duplicate' }
  | { readonly kind: 'ignored'; readonly reason: string }
  | { readonly kind: 'parked'; readonly on: string; readonly reason: ParkReason }

export type ParkReason = 'waiting' | 'unknown_type' | 'unknown_version' | 'invalid_payload'

export const applied: Verdict = { kind: 'applied' }
export const duplicate: Verdict = { kind: 'duplicate' }
export const ignored = (reason: string): Verdict => ({ kind: 'ignored', reason })
export const waitFor = (on: string): Verdict => ({ kind: 'parked', on, reason: 'waiting' })

/** Distinguishes a verdict from a row or fact that was not judged yet. */
export const isVerdict = <T extends object>(value: T | Verdict): value is Verdict => 'kind' in value

export interface FoldContext<P> {
  readonly event: Envelope
  /** The event's receipt time in milliseconds. */
  readonly at: number
  readonly payload: P
  readonly rows: Rows
  /** Records that `subject` changed, so that facts parked on it are tried again. */
  wake(subject: string): void
}

/** A cold row that a fold will look up; fetched before the fold, which does no IO. */
export interface Read {
  readonly table: Table
  readonly key: readonly [KeyPart, KeyPart?, KeyPart?]
}

/** A file that code of the project made, and that the ledger only tells of. */
export interface StoredFile {
  /** Below the folder of the workspace. */
  readonly path: string
  /** Absent in events of earlier versions. */
  readonly bytes?: number | undefined
  readonly sha256?: string | undefined
}

/** A value that is in an event itself. */
export interface CarriedValue {
  readonly bytes: number
  readonly sha256: string
  /** The payload without the value: it still has the size and the checksum. */
  readonly without: Readonly<Record<string, unknown>>
}

/**
 * Why two events do not commute. Everything may arrive in any order except pairs for which `when` holds: those follow
 * the order in which the ledger was consumed, which is recorded.
 */
// biome-ignore lint/suspicious/noExplicitAny: the payloads of the pair are those of the types that `with` names.
export interface Ordered<P = any> {
  readonly with: readonly string[]
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  readonly when: (mine: P, other: any) => boolean
  readonly why: string
}

export interface EventSpec<P, I = P> {
  readonly type: string
  readonly version: number
  readonly doc: string
  /** `I` is what callers write, `P` what folds see: defaults are filled in between. */
  readonly payload: z.ZodType<P, I>
  readonly idempotencyKey: (payload: P) => string
  /**
   * How a repetition is recognised. `structure`: by the rows themselves (keys, attempts, versions), which never expires.
   * `key`: by the idempotency key, remembered for a window.
   */
  readonly dedup: 'structure' | 'key'
  /** The owner of sealed rows this event is about; a fact about a sealed owner is neither applied nor parked. */
  readonly about?: (payload: P) => { readonly owner: string; readonly id: string } | undefined
  readonly reads?: (payload: P) => readonly Read[]
  /** The file that this event tells of, if it tells of one. Asked of any payload that is on record, also of an earlier version's. */
  readonly stores?: (payload: Readonly<Record<string, unknown>>) => StoredFile | undefined
  /** The value that this event carries, if it carries one. Asked like `stores`. */
  readonly carries?: (payload: Readonly<Record<string, unknown>>) => CarriedValue | undefined
  /** Paths of files that need not be there any more: events told of them before. Asked of any payload, as `stores` is. */
  readonly removes?: (payload: Readonly<Record<string, unknown>>) => readonly string[]
  readonly ordered?: readonly Ordered<P>[]
  /** True if nobody hurries to find the event in the tables: they are published because of others, or after an hour. */
  readonly publishedWithOthers?: boolean
  /** True if so much follows from the event that its caller is answered first: nothing is decided before the event is durable. */
  readonly answeredFirst?: boolean
  readonly fold: (context: FoldContext<P>) => Verdict
}

// biome-ignore lint/suspicious/noExplicitAny: a registry holds events of every shape.
export interface EventDefinition<P = any, I = any> extends EventSpec<P, I> {
  /** Checks a payload from anywhere: the compiled schema, with ordinary zod errors. */
  readonly parse: (payload: unknown) => { success: true; data: P } | { success: false; error: z.ZodError }
}

/** Declares an event once: payload, idempotency key, effect and description live together. */
export function defineEvent<P, I>(spec: EventSpec<P, I>): EventDefinition<P, I> {
  // Compiling takes milliseconds, so the first event of a type pays for it, not every process that imports the definition.
  let compiled: z.ZodType<P> | undefined
  const parse: EventDefinition<P, I>['parse'] = (payload) => {
    compiled ??= z.compile(spec.payload) as z.ZodType<P>
    return compiled.safeParse(payload) as ReturnType<EventDefinition<P, I>['parse']>
  }
  return { ...spec, parse }
}

/** An event as a caller hands it in; the ledger adds ids, time and scope. */
export interface NewEvent extends EventContext {
  readonly definition: EventDefinition
  readonly payload: unknown
}

export interface EventContext {
  readonly correlation_id?: string
  readonly causation_id?: string
  readonly traceparent?: string
  readonly actor?: string
}

/** An event to append, with its payload checked by the compiler too. */
export function newEvent<P, I>(definition: EventDefinition<P, I>, payload: I, context: EventContext = {}): NewEvent {
  return { definition, payload, ...context }
}

/** Everything the engine needs to know about a domain: its facts and its tables. */
export interface Registry {
  readonly tables: readonly Table[]
  readonly events: readonly EventDefinition[]
}
