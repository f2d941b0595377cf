import type { FoldContext } from '../../model/event.ts'
import { markHappening, settleHappening } from './happenings/happenings.ts'
import { sensorMessageConflicts } from './sensor-message-conflicts.table.ts'
import { type SensorMessageRow, sensorMessages } from './sensor-messages.table.ts'
import type { SensorStateRow } from './sensor-state.table.ts'

interface DeliveredMessage {
  readonly sensor_id: string
  readonly message_id: string
  readonly body_hash?: string | null | undefined
  readonly body_size?: number | null | undefined
}

interface Tried extends DeliveredMessage {
  readonly try: number
  readonly max_tries: number
}

type Context = Pick<FoldContext<unknown>, 'event' | 'at' | 'rows'>
type Known = Readonly<SensorMessageRow> | undefined

/** What to do with a delivery of a message. */
export type DeliveryDecision =
  | { readonly kind: 'evaluate'; readonly try: number }
  | { readonly kind: 'accepted'; readonly eval_id: string }
  /** It was accepted with another body. */
  | { readonly kind: 'conflict'; readonly eval_id: string }
  | { readonly kind: 'dead' }

export function deliveryOf(known: Known, bodyHash: string | null): DeliveryDecision {
  if (known === undefined) return { kind: 'evaluate', try: 1 }
  const { accepted_eval_id: eval_id } = known
  if (eval_id !== null) return { kind: isOtherBody(bodyHash, known) ? 'conflict' : 'accepted', eval_id }
  return known.status === 'dead' ? { kind: 'dead' } : { kind: 'evaluate', try: known.tries + 1 }
}

/** True if both bodies are known and differ. Messages that Servo makes itself have none. */
const isOtherBody = (bodyHash: string | null | undefined, known: Readonly<SensorMessageRow>): boolean =>
  bodyHash != null && known.body_hash !== null && known.body_hash !== bodyHash

function changed(context: Context, message: DeliveredMessage, known: Known): SensorMessageRow {
  const { at, event } = context
  return {
    first_seen_at: at,
    tries: 0,
    replayed_after: 0,
    accepted_eval_id: null,
    accepted_at: null,
    last_error: null,
    dead_since: null,
    replayed_at: null,
    replayed_by: null,
    status: 'failing',
    ...known,
    sensor_id: message.sensor_id,
    message_id: message.message_id,
    body_hash: message.body_hash ?? known?.body_hash ?? null,
    body_size: message.body_size ?? known?.body_size ?? null,
    revision: (known?.revision ?? 0) + 1,
    row_version: event.event_id,
  }
}

export function acceptMessage(
  context: Context,
  message: Tried,
  { known, state, evalId }: { known: Known; state: SensorStateRow; evalId: string },
): void {
  if (known?.status === 'dead') state.dead_letters -= 1
  context.rows.cold(sensorMessages).merge({
    ...changed(context, message, known),
    status: 'accepted',
    tries: Math.max(known?.tries ?? 0, message.try),
    accepted_eval_id: evalId,
    accepted_at: context.at,
    last_error: null,
    dead_since: null,
  })
  settleHappening(context.rows, message.sensor_id, message.message_id, context.event.event_id)
}

export function failMessage(
  context: Context,
  message: Tried,
  { known, state, error, refused }: { known: Known; state: SensorStateRow; error: string; refused: boolean },
): void {
  const isDead = refused || known?.status === 'dead' || message.try - (known?.replayed_after ?? 0) >= message.max_tries
  if (isDead && known?.status !== 'dead') state.dead_letters += 1
  context.rows.cold(sensorMessages).merge({
    ...changed(context, message, known),
    status: isDead ? 'dead' : 'failing',
    tries: message.try,
    last_error: error,
    dead_since: isDead ? (known?.dead_since ?? context.at) : null,
  })
  if (isDead)
    markHappening(context.rows, message.sensor_id, message.message_id, { dead: true, eventId: context.event.event_id })
}

export function replayMessage(context: Context, known: Readonly<SensorMessageRow>, by: string, state: SensorStateRow): void {
  state.dead_letters -= 1
  context.rows.cold(sensorMessages).merge({
    ...changed(context, known, known),
    status: 'failing',
    replayed_after: known.tries,
    replayed_at: context.at,
    replayed_by: by,
    dead_since: null,
  })
  markHappening(context.rows, known.sensor_id, known.message_id, { dead: false, eventId: context.event.event_id })
}

/** Keeps that another body came under the id of an accepted message. True if that is news. */
export function noteConflict(context: Context, message: DeliveredMessage, known: Readonly<SensorMessageRow>): boolean {
  const { event, at, rows } = context
  const { sensor_id, message_id, body_hash } = message
  if (body_hash == null || known.accepted_eval_id === null || !isOtherBody(body_hash, known)) return false
  if (rows.cold(sensorMessageConflicts).lookup(sensor_id, message_id, body_hash) !== undefined) return false
  rows.cold(sensorMessageConflicts).merge({
    sensor_id,
    message_id,
    body_hash,
    body_size: message.body_size ?? null,
    accepted_body_hash: known.body_hash,
    accepted_body_size: known.body_size,
    accepted_eval_id: known.accepted_eval_id,
    conflicting_event_id: event.event_id,
    detected_at: at,
    row_version: event.event_id,
  })
  return true
}
