import { z } from 'zod'
import { ServoError } from '../../lib/error.ts'
import { isObject } from '../../lib/is-object.ts'

/**
 * What a request says, with the id that it goes by. Callers of other systems name it `client_request_id`, or in the header
 * `Idempotency-Key`; both mean `request_id`. What the schema has no such id for is left as it is.
 */
export function withRequestId(request: Request, said: unknown, schema: z.ZodType): unknown {
  if (!isObject(said) || !(schema instanceof z.ZodObject) || !Object.hasOwn(schema.shape, 'request_id')) return said
  const { request_id, client_request_id, ...rest } = said
  // A structured header has its text in quotes, and many callers leave them out.
  const header = request.headers.get('idempotency-key')?.replace(/^"(.*)"$/, '$1')
  const ids = new Set([request_id, client_request_id, header].filter((id) => id !== undefined))
  if (ids.size > 1)
    throw new ServoError('invalid', 'bad_request_id', 'the request has more than one id', {
      hint: 'Give one id: as request_id, as client_request_id or in the header Idempotency-Key.',
    })
  const [id] = ids
  return id === undefined ? rest : { ...rest, request_id: id }
}
