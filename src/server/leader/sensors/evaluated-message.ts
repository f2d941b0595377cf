import { z } from 'zod'
import type { EvaluationRequest, SensorMessage } from '../../../contract/evaluation.ts'
import type { SensorRow } from '../../../domain/sensors/sensor-definitions.table.ts'
import { ServoError } from '../../../lib/error.ts'

const text = z.string().min(1)
const happened = { run_id: text.nullable(), at: text }
const ofAsset = { asset_key: text, partition_key: z.string().nullable(), ...happened }

/** What asset and run sensors are told. Servo makes these itself; a user who sends one by hand may be mistaken. */
const happening = z.discriminatedUnion('type', [
  z.object({ type: z.literal('materialized'), ...ofAsset }),
  z.object({ type: z.literal('check_failed'), ...ofAsset, checks: z.array(text) }),
  z.object({
    type: z.literal('run'),
    run_id: text,
    state: z.enum(['SUCCEEDED', 'FAILED', 'CANCELLED']),
    asset_selection: z.array(text),
    labels: z.record(z.string(), z.string()),
    at: text,
  }),
])

/** What the code of a sensor is asked about a message: senders' messages as they are, what happened here as a happening. */
export function evaluatedMessage(
  { sensor_name: sensor, config, timeout_ms }: Readonly<SensorRow>,
  message: SensorMessage,
  evaluation_id: string,
): EvaluationRequest {
  const begun = { evaluation_id, timeout_ms, sensor }
  if (config.type !== 'asset' && config.type !== 'run') return { ...begun, of: 'message', message }
  const parsed = happening.safeParse(message.data)
  if (parsed.success) return { ...begun, of: 'happening', id: message.id, happening: parsed.data }
  const [issue] = parsed.error.issues
  throw new ServoError('invalid', 'bad_happening', `${issue?.path.join('.') || 'the message'}: ${issue?.message}`, {
    hint: `${sensor} watches this workspace: send a JSON object of the type materialized, check_failed or run.`,
  })
}
