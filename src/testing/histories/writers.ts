import { toIso } from '../../lib/time.ts'
import { type UlidSource, ulidSource } from '../../lib/ulid.ts'
import type { Envelope } from '../../model/envelope.ts'
import type { EventDefinition } from '../../model/event.ts'

export const TENANT = 'acme'
export const WORKSPACE = 'analytics'

/** The fields of an envelope besides its payload; a writer fills these in. */
export interface Stamp {
  readonly event_id: string
  readonly timestamp: string
  readonly source: string
  readonly behind_ms?: number
}

/** An event as a writer would append it: the key comes from the definition, never from the writer. */
function envelope(definition: EventDefinition, payload: Record<string, unknown>, stamp: Stamp): Envelope {
  const parsed = definition.parse(payload)
  return {
    ...stamp,
    event_type: definition.type,
    event_version: definition.version,
    tenant_id: TENANT,
    workspace_id: WORKSPACE,
    // A payload that does not parse has no key of its own; the event is parked under its id, whatever its key is.
    idempotency_key: parsed.success ? definition.idempotencyKey(parsed.data) : `unreadable:${stamp.event_id}`,
    payload,
  }
}

/**
 * One process that appends. Its ids only grow, but its clock is wrong by `skewMs`, so that the ids of two writers show
 * nothing about which event came first. It may know of later times on record, and then says by how much it is behind.
 */
export class SimulatedWriter {
  readonly name: string
  readonly skewMs: number
  readonly #behindMs: number
  readonly #now: () => number
  readonly #mint: UlidSource

  constructor(index: number, skewMs: number, now: () => number, behindMs = 0) {
    this.name = `writer-${index}`
    this.skewMs = skewMs
    this.#behindMs = behindMs
    this.#now = () => now() + skewMs
    this.#mint = ulidSource(this.#now, (length) => new Uint8Array(length).fill(index))
  }

  stamp(): Stamp {
    const stamp = { event_id: this.#mint(), timestamp: toIso(this.#now()), source: this.name }
    return this.#behindMs === 0 ? stamp : { ...stamp, behind_ms: this.#behindMs }
  }

  write(definition: EventDefinition, payload: Record<string, unknown>): Envelope {
    return envelope(definition, payload, this.stamp())
  }
}
