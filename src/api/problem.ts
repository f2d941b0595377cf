import { z } from 'zod'
import { type ErrorKind, isServoError, messageOf, ServoError } from '../lib/error.ts'
import { named, type Told } from './answers/told.ts'

/** Problem details as in RFC 9457, with our stable code and a hint. */
export const problemDetails = named(
  'Problem',
  z.object({
    type: z.string().describe('`urn:servo:problem:` and the code.'),
    title: z.string(),
    status: z.int(),
    detail: z.string().describe('What is wrong, in words. The text may change.'),
    code: z.string().describe('What is wrong, for programs: it does not change.'),
    hint: z.string().exactOptional().describe('What to do.'),
    field: z.string().exactOptional().describe('The field of the request, as a path with dots.'),
    should_cancel: z.boolean().exactOptional().describe('True if the worker shall stop the attempt.'),
    message_id: z
      .string()
      .exactOptional()
      .describe(
        'Of a message to a sensor: its id, which is new if the sender gave none, so that it can be sent again under it.',
      ),
    try: z.int().exactOptional().describe('The try that failed.'),
    max_tries: z.int().exactOptional().describe('After how many tries a message is a dead letter.'),
    expected: z.number().exactOptional().describe('The state version that the caller expected.'),
    actual: z.number().exactOptional().describe('The one there is.'),
    current: z.string().exactOptional().describe('The state there is.'),
    requested: z.string().exactOptional().describe('The one that the caller asked for.'),
    position: z.string().exactOptional().describe('The id of the newest event that can be read.'),
  }),
)
export type Problem = Told<typeof problemDetails>

/** Facts of an error that the caller is told; all others stay inside. */
const told: Readonly<Record<string, 'string' | 'number' | 'boolean'>> = {
  field: 'string',
  should_cancel: 'boolean',
  message_id: 'string',
  try: 'number',
  max_tries: 'number',
  expected: 'number',
  actual: 'number',
  current: 'string',
  requested: 'string',
  position: 'string',
}

const statusOfKind: Record<ErrorKind, number> = {
  invalid: 400,
  not_found: 404,
  conflict: 409,
  unavailable: 503,
  corrupt: 500,
  bug: 500,
}

/** Errors for which HTTP has a more exact word than their kind. */
const statusOfCode: Readonly<Record<string, number>> = {
  unauthenticated: 401,
  token_expired: 401,
  token_revoked: 401,
  forbidden: 403,
  not_permitted: 403,
  wrong_attempt: 403,
  bad_signature: 401,
  old_timestamp: 401,
  bad_token: 401,
  wrong_audience: 401,
  wrong_service_account: 403,
  wrong_workspace: 403,
  method_not_allowed: 405,
  body_too_large: 413,
  unsupported_media_type: 415,
  sensor_failed: 500,
  unfit_message: 422,
  too_many_requests: 429,
  idempotency_key_reused: 422,
  not_visible_yet: 504,
  query_timeout: 504,
  too_many_queries: 429,
  query_too_large: 422,
  out_of_memory: 422,
}

const OUR_FAULT = 'Something is wrong with Servo'

const titles: Readonly<Record<number, string>> = {
  400: 'Invalid request',
  401: 'Not authenticated',
  403: 'Not allowed',
  404: 'Not found',
  405: 'Method not allowed',
  409: 'Conflict',
  413: 'Request too large',
  415: 'Unsupported content type',
  422: 'The message does not match the schema',
  429: 'Too many requests',
  500: OUR_FAULT,
  503: 'Service unavailable',
  504: 'Not in time',
}

/** Not every 500 is our fault, and not every 503 means that something cannot be reached. */
const titleOfCode: Readonly<Record<string, string>> = {
  sensor_failed: 'The sensor failed',
  idempotency_key_reused: 'The id was used for another request',
  query_too_large: 'The query needs too much memory',
  out_of_memory: 'The query needs too much memory',
  paused: 'The sensor is paused',
  disabled: 'The sensor is disabled',
  automation_paused: 'All automation is paused',
  automation_off: 'Automation is off',
  secret_missing: 'The sensor is not ready',
  audience_unknown: 'The sensor is not ready',
}

export function problemOf(error: unknown): Problem {
  const known = isServoError(error) ? error : unforeseen(error)
  const status = statusOfCode[known.code] ?? statusOfKind[known.kind]
  return {
    type: `urn:servo:problem:${known.code}`,
    title: titleOfCode[known.code] ?? titles[status] ?? OUR_FAULT,
    status,
    detail: known.message,
    code: known.code,
    ...(known.hint !== undefined && { hint: known.hint }),
    ...Object.fromEntries(Object.entries(known.facts).filter(([name, fact]) => typeof fact === told[name])),
  }
}

export function problemResponse(error: unknown): Response {
  const problem = problemOf(error)
  const headers = new Headers({ 'content-type': 'application/problem+json', 'cache-control': 'no-store' })
  const retryAfterSec = retryAfterSecOf(error)
  // The server retries its storage all the time, so a caller that retries in a second soon learns when it works.
  if (problem.status === 503 || problem.status === 429 || retryAfterSec !== undefined)
    headers.set('retry-after', String(retryAfterSec ?? 1))
  if (problem.status === 401) headers.set('www-authenticate', 'Bearer')
  return new Response(JSON.stringify(problem), { status: problem.status, headers })
}

/** What the server logs about a request that it could not answer; undefined if the answer tells the caller all there is to say. */
export function logged({ method, url }: Pick<Request, 'method' | 'url'>, error: unknown): ServoError | undefined {
  if (isServoError(error) && error.kind !== 'bug' && error.kind !== 'corrupt') return undefined
  const stack = error instanceof Error && error.stack !== undefined ? error.stack : messageOf(error)
  return new ServoError('bug', 'internal', `${method} ${new URL(url).pathname} could not be answered: ${stack}`, {
    cause: error,
  })
}

/** Set where a second is not what it takes. */
function retryAfterSecOf(error: unknown): number | undefined {
  const { retry_after_sec } = isServoError(error) ? error.facts : {}
  return typeof retry_after_sec === 'number' ? retry_after_sec : undefined
}

/** The text of an unexpected error may reveal too much to a stranger, so it stays in the logs of the server. */
function unforeseen(error: unknown): ServoError {
  return new ServoError('bug', 'internal', 'the request could not be answered because of a bug in Servo', {
    hint: 'The server has logged the error. Please report it.',
    cause: messageOf(error),
  })
}
