import { sha256 } from '../../lib/hash.ts'

/** Longer parts are hashed, so that ids stay within their bounds whatever a sender calls its messages. */
const MAX_PART = 150

/** One part of an id or a run key. Percent-encoding leaves neither `:` nor `=`, so no part can imitate two parts or a hash. */
export function idPart(text: string): string {
  const encoded = text.isWellFormed() ? encodeURIComponent(text) : undefined
  return encoded !== undefined && encoded.length <= MAX_PART ? encoded : `sha256=${sha256(JSON.stringify(text))}`
}

/** What made a sensor evaluate: a message at its nth try, or a poll that began at a version of the sensor's state. */
export type EvaluationSource =
  | { readonly source: 'push'; readonly message_id: string; readonly try: number }
  | { readonly source: 'poll'; readonly state_version: number }

/**
 * The id of an evaluation. `begun` is chosen when the evaluation begins: it tells apart two that processes began for the same message
 * and try, or from the same version, and is the same however often the record is repeated.
 */
export function evalIdOf(sensorId: string, source: EvaluationSource, begun: string): string {
  const of = source.source === 'push' ? `msg:${idPart(source.message_id)}:${source.try}` : `poll:${source.state_version}`
  return `${idPart(sensorId)}:${of}:${idPart(begun)}`
}

/** The record of all polls that found nothing at one version of the state. */
export const emptyPollsId = (sensorId: string, version: number): string => `${idPart(sensorId)}:polls:${version}`

/** What the run keys of a sensor begin with. Another sensor's keys begin with another id. */
export const runKeysOfSensor = (sensorId: string): string => `sensor:${idPart(sensorId)}:`

/** The run key of the nth run that an evaluation asks for: the key that the code gave it, or its place in the evaluation. */
export function runKeyOfEvaluation(sensorId: string, source: EvaluationSource, index: number, key?: string | null): string {
  const own = runKeysOfSensor(sensorId)
  if (key != null) return `${own}key:${idPart(key)}`
  return source.source === 'push'
    ? `${own}msg:${idPart(source.message_id)}:${index}`
    : `${own}poll:${source.state_version}:${index}`
}

/** The key that code gave, of a run key that has it; null if the key was too long to be kept. */
export function keyInRunKey(runKey: string): string | null {
  const [, part] = /^sensor:[^:]*:key:([^:=]*)$/.exec(runKey) ?? []
  return part === undefined ? null : decodeURIComponent(part)
}

/** True if Servo itself may have made a message with this id. */
export const isHappeningId = (messageId: string): boolean => /^(?:materialized|check_failed|run):/.test(messageId)
