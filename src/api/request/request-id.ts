import { z } from 'zod'
import { ServoError } from '../../lib/error.ts'
import { isObject } from '../../lib/is-object.ts'
import { id } from '../../model/envelope.ts'

/** What a request says, and the id that it goes by. */
interface Identified {
  readonly said: unknown
  readonly requestId: string | undefined
}

/**
 * What a request says, with the id that it goes by. Callers of other systems name it `client_request_id`, or in the header
 * `Idempotency-Key`; both mean `request_id`. Where the schema has no such id, the id is taken out: the router alone knows what it is for.
 */
export function withRequestId(request: Request, said: unknown, schema: z.ZodType): Identified {
  if (!isObject(said)) return { said, requestId: undefined }
  const { request_id, client_request_id, ...rest } = said
  const ids = new Set([request_id, client_request_id, headerId(request)].filter((each) => each !== undefined))
  if (ids.size > 1)
    throw new ServoError('invalid', 'bad_request_id', 'the request has more than one id', {
      hint: 'Give one id: as request_id, as client_request_id or in the header Idempotency-Key.',
    })
  const [given] = ids
  const isDeclared = schema instanceof z.ZodObject && Object.hasOwn(schema.shape, 'request_id')
  if (given === undefined) return { said: rest, requestId: undefined }
  // The schema says what is wrong with an id that it declares.
  if (isDeclared) return { said: { ...rest, request_id: given }, requestId: typeof given === 'string' ? given : undefined }
  return { said: rest, requestId: checkedId(given) }
}

/** The id in the header, for a request that says nothing else. */
export function requestIdInHeader(request: Request): string | undefined {
  const given = headerId(request)
  return given === undefined ? undefined : checkedId(given)
}

// A structured header has its text in quotes, and many callers leave them out.
const headerId = (request: Request): string | undefined =>
  request.headers.get('idempotency-key')?.replace(/^"(.*)"$/, '$1') ?? undefined

function checkedId(given: unknown): string {
  const parsed = id.safeParse(given)
  if (parsed.success) return parsed.data
  throw new ServoError('invalid', 'bad_request_id', `the id of the request: ${parsed.error.issues[0]?.message}`, {
    hint: 'Use a short text without line breaks, such as a UUID.',
  })
}
