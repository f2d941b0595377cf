import { z } from 'zod'
import type { DeliveryAnswer } from '../../contract/delivery.ts'
import { ServoError } from '../../lib/error.ts'
import { named, type Told } from '../answers/told.ts'
import { runOfEvaluation } from '../automation/sensor-contract.ts'
import { RETRY_AFTER_SEC } from './refusals.ts'

type Answer<K extends DeliveryAnswer['kind']> = Extract<DeliveryAnswer, { kind: K }>

/** What a sender is told who sends to an address of no sensor. It is the same whatever part of the address is wrong. */
export const noSuchHook = (): ServoError =>
  new ServoError('not_found', 'no_such_hook', 'no sensor has this address', {
    hint: 'Compare the address with the one that `servo sensors show` prints.',
  })

/** What a sender is told whose message was taken, or who is to send it no more. */
export const deliveryAnswer = named(
  'DeliveryAnswer',
  z.union([
    z.object({
      message_id: z.string(),
      eval_id: z.string(),
      run_ids: z.array(z.string()),
      runs: z.array(runOfEvaluation),
      repeated: z.boolean().describe('True if it was accepted before.'),
      conflict: z
        .literal(true)
        .optional()
        .describe('It was accepted before with another body, which is on record as a conflict.'),
    }),
    z.object({
      message_id: z.string().nullable(),
      dead: z.literal(true).describe('It failed too often, and is a dead letter. The sender is to stop.'),
    }),
  ]),
)

/**
 * The answer to a message for one sensor, or for several that share a path; a problem is thrown. 2xx tells the sender to stop, so one
 * that did not take the message decides: the sender tries again, and those that have accepted it recognize it.
 */
export function answerOfDelivery(answers: readonly DeliveryAnswer[], isForm = false): Told<typeof deliveryAnswer> {
  const failures = answers.filter((answer) => answer.kind === 'failed')
  const failed = failures.find(({ unfit_field }) => unfit_field === undefined)
  if (failed !== undefined) throw sensorFailed(failed)
  const [standstill] = answers.filter((answer) => answer.kind === 'standstill').toSorted(removedLast)
  const accepted = answers.filter((answer) => answer.kind === 'accepted')
  if (standstill !== undefined && (standstill.code !== 'removed' || answers.every(({ kind }) => kind === 'standstill')))
    throw standstill.code === 'removed' ? noSuchHook() : standing(standstill.code)
  // 4xx makes many senders give up, so it is told only if no other sensor wants the message again.
  const [unfit] = failures
  if (unfit !== undefined) throw doesNotFit(unfit, isForm)
  const [first] = accepted
  if (first !== undefined) {
    return {
      message_id: first.message_id,
      eval_id: first.eval_id,
      run_ids: accepted.flatMap(({ run_ids }) => run_ids),
      runs: accepted.flatMap(({ runs }) => runs),
      repeated: accepted.every(({ repeated }) => repeated),
      ...(accepted.some(({ conflict }) => conflict) && { conflict: true as const }),
    }
  }
  const dead = answers.find((answer) => answer.kind === 'dead')
  return { message_id: dead?.message_id ?? null, dead: true as const }
}

const removedLast = (a: Answer<'standstill'>, b: Answer<'standstill'>): number =>
  Number(a.code === 'removed') - Number(b.code === 'removed')

/** The error itself is for the owner of the sensor, not for whoever may send to it. */
function sensorFailed({ message_id, try: attempt, max_tries }: Answer<'failed'>): ServoError {
  return new ServoError('unavailable', 'sensor_failed', `the sensor failed at try ${attempt} of ${max_tries}`, {
    hint: 'Send the message again with the same id (header Idempotency-Key, if your messages have no id of their own). `servo sensors evals` shows the error.',
    facts: { message_id, try: attempt, max_tries },
  })
}

const FORM_HINT =
  'The body was read as a form. If it is JSON, send it with the header `Content-Type: application/json`; `curl -d` sends a form by default.'

/** The field alone: what else is wrong with it may quote the message. */
function doesNotFit(
  { message_id, unfit_field: field = '', try: attempt, max_tries }: Answer<'failed'>,
  isForm: boolean,
): ServoError {
  const where = field === '' ? '' : ` at ${JSON.stringify(field)}`
  return new ServoError('invalid', 'unfit_message', `the message does not match the schema of the sensor${where}`, {
    hint: isForm
      ? FORM_HINT
      : 'Fix the message: sent again unchanged, it will fail again unless the sensor changes. `servo sensors evals` shows what does not match.',
    facts: { message_id, try: attempt, max_tries, ...(field !== '' && { field }) },
  })
}

const reasons = {
  disabled: 'this sensor is disabled',
  paused: 'this sensor is paused',
  automation_paused: 'all automation is paused',
  automation_off: 'automation is off on this server',
} as const

export const standing = (code: keyof typeof reasons): ServoError =>
  new ServoError('unavailable', code, reasons[code], {
    hint: 'Nothing was recorded. Send the message again later.',
    facts: { retry_after_sec: RETRY_AFTER_SEC },
  })
