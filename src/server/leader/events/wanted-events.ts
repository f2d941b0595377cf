import type { EventFilter } from '../../../api/events/event-contract.ts'
import { isObject } from '../../../lib/is-object.ts'
import type { Envelope } from '../../../model/envelope.ts'
import type { WantedEvents } from './event-tail.ts'

/** Which events are wanted: those that match everything that is named. */
export function wantedEvents({ run, type, asset }: EventFilter): WantedEvents {
  const types = type === undefined ? undefined : new Set(type.split(',').map((each) => each.trim()))
  return {
    name: JSON.stringify([run ?? null, type ?? null, asset ?? null]),
    matches: (event) =>
      (types === undefined || types.has(event.event_type)) &&
      (run === undefined || isOfRun(event, run)) &&
      (asset === undefined || isOfAsset(event, asset)),
  }
}

function isOfRun({ correlation_id, payload }: Envelope, run: string): boolean {
  if (correlation_id === run || member(payload, 'run_id') === run) return true
  // A tick or a chunk that asks for a run has it inside.
  return member(member(payload, 'run'), 'run_id') === run
}

function isOfAsset({ payload }: Envelope, asset: string): boolean {
  if (member(payload, 'asset_key') === asset) return true
  const task = member(payload, 'task_key')
  if (typeof task === 'string' && (task === asset || task.startsWith(`${asset}[`))) return true
  return ['assets', 'asset_selection', 'tasks'].some((list) => has(member(payload, list), asset))
}

const has = (list: unknown, asset: string): boolean =>
  Array.isArray(list) && list.some((each) => each === asset || member(each, 'asset_key') === asset)

const member = (value: unknown, name: string): unknown => (isObject(value) ? value[name] : undefined)
