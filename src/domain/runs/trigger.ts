import { z } from 'zod'
import { id } from '../../model/envelope.ts'
import { runKeysOfSensor } from '../sensors/evaluation-ids.ts'

/** The evaluation of a sensor that asks for a run. */
const evaluationRef = {
  sensor_id: id,
  eval_id: id,
  /** How many runs in a row sensors have asked for, each because of the one before, this one among them; absent if it is the first. */
  chain: z.number().int().min(2).optional(),
}

/** The source of a request for a run. */
export const sourceRef = z.discriminatedUnion('type', [
  z.object({ type: z.literal('schedule'), schedule_id: id, tick_id: id }),
  z.object({ type: z.literal('sensor'), ...evaluationRef }),
  z.object({ type: z.literal('backfill'), backfill_id: id, chunk_id: id, chunk_index: z.number().int().min(0) }),
  z.object({ type: z.literal('manual'), user_id: id, request_id: id }),
  z.object({
    type: z.literal('rerun'),
    run_id: id,
    request_id: id,
    mode: z.enum(['from_failure', 'subset', 'all']),
    /** A sensor asked again for the key of a run that had failed. */
    asked_by: z.object(evaluationRef).nullish(),
  }),
  z.object({ type: z.literal('automation'), asset_key: id, decision_id: id }),
])
export type SourceRef = z.infer<typeof sourceRef>

export const triggerTypes = [
  'schedule',
  'sensor',
  'backfill',
  'manual',
  'rerun',
  'automation',
] as const satisfies readonly SourceRef['type'][]

export interface EvaluationRef {
  readonly sensor_id: string
  readonly eval_id: string
  readonly chain?: number | undefined
}

/** The evaluation on which a request depends, if any: it counts only if the evaluation does. */
export function evaluationOf(source: SourceRef): EvaluationRef | undefined {
  if (source.type === 'sensor') {
    const { type: _, ...evaluation } = source
    return evaluation
  }
  return source.type === 'rerun' ? (source.asked_by ?? undefined) : undefined
}

/** How many runs in a row sensors have asked for, this one among them; 0 if no sensor asked for it. */
export function chainOf(source: SourceRef): number {
  const asker = evaluationOf(source)
  return asker === undefined ? 0 : (asker.chain ?? 1)
}

/**
 * What the run keys of a source begin with. Keys that people choose live under `user:`; each kind of automation has its own prefix, and
 * so has each sensor, so that none can take another's key.
 */
export function runKeyPrefixes(source: SourceRef): readonly string[] {
  switch (source.type) {
    case 'schedule':
      return ['sched:']
    case 'sensor':
      return [runKeysOfSensor(source.sensor_id)]
    case 'backfill':
      return ['backfill:']
    case 'manual':
      return ['manual:', 'user:']
    case 'rerun':
      return ['rerun:']
    case 'automation':
      return ['auto:']
  }
}

export function runKeyBelongsTo(runKey: string, source: SourceRef): boolean {
  return runKeyPrefixes(source).some((prefix) => runKey.startsWith(prefix) && runKey.length > prefix.length)
}
