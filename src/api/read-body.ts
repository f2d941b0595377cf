import type { z } from 'zod'
import { ServoError } from '../lib/error.ts'
import { isObject } from '../lib/is-object.ts'
import { withRequestId } from './request/request-id.ts'

/** One event holds no more. Larger values belong in the store, with a reference here. */
const MAX_BYTES = 1 << 20
/** Half of the depth that our own JSON may have: a body becomes part of an event, which wraps it. */
const MAX_DEPTH = 32

/** The body of a request, checked from the outside in: form, size, text, JSON, depth, fields. No body at all is an empty object. */
export async function readBody<T>(request: Request, schema: z.ZodType<T>, isKeyed = false): Promise<ReadBody<T>> {
  const bytes = await readBytes(request)
  if (bytes.length > 0) checkMediaType(request)
  const json = bytes.length === 0 ? {} : checkedJson(bytes)
  const { said: value, requestId } = isKeyed ? withRequestId(request, json, schema) : { said: json, requestId: undefined }
  const parsed = schema.safeParse(value)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw badBody(issue?.path ?? [], issue?.message ?? 'is not valid')
  }
  const unknown = unknownField(value, parsed.data)
  if (unknown !== undefined) throw badBody(unknown, 'is not a known field of this request')
  return { body: parsed.data, requestId }
}

export interface ReadBody<T> {
  readonly body: T
  /** The id that the request goes by, of a request that may have one. */
  readonly requestId: string | undefined
}

/** What the headers say of the form of a body. */
export interface MediaType {
  /** The header as it was given. */
  readonly given: string
  readonly type: string
  readonly charset: string | undefined
  readonly encoding: string
}

export function mediaTypeOf(headers: Headers): MediaType {
  const given = headers.get('content-type') ?? ''
  const [type = '', ...parameters] = given
    .toLowerCase()
    .split(';')
    .map((part) => part.trim())
  const charset = parameters
    .find((each) => each.startsWith('charset='))
    ?.slice('charset='.length)
    .replaceAll('"', '')
  return { given, type, charset, encoding: (headers.get('content-encoding') ?? 'identity').toLowerCase() }
}

/** What is wrong with the form of a body. */
export function unsupported(given: string, encoding: string): string {
  if (encoding !== 'identity') return `unsupported content encoding ${encoding}`
  return given === '' ? 'the request has no content type' : `unsupported content type ${given}`
}

function checkMediaType(request: Request): void {
  const { given, type, charset, encoding } = mediaTypeOf(request.headers)
  if (type === 'application/json' && (charset === undefined || charset === 'utf-8') && encoding === 'identity') return
  throw new ServoError('invalid', 'unsupported_media_type', unsupported(given, encoding), {
    hint: 'Send UTF-8 JSON with the header content-type: application/json, not compressed.',
  })
}

/** Counts while reading, because a caller may omit the length or lie about it. */
export async function readBytes(request: Request): Promise<Uint8Array> {
  if (Number(request.headers.get('content-length') ?? 0) > MAX_BYTES) throw tooLarge()
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of request.body ?? []) {
    size += chunk.length
    if (size > MAX_BYTES) throw tooLarge()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(utf8.decode(bytes))
  } catch (cause) {
    throw new ServoError('invalid', 'bad_json', 'the body is not JSON in UTF-8', {
      hint: 'Check it with a JSON parser.',
      cause,
    })
  }
}

/** The value of JSON that is neither too deep nor dangerous to read. */
export function checkedJson(bytes: Uint8Array): unknown {
  const value = parseJson(bytes)
  checkShape(value)
  return value
}

/** Does not recurse: the depth is what is being checked. */
export function checkShape(body: unknown): void {
  let level = [body]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) throw badBody([], `must not be nested deeper than ${MAX_DEPTH} levels`)
    const below: unknown[] = []
    for (const value of level) {
      if (typeof value !== 'object' || value === null) continue
      // This key survives parsing here, but many later readers drop it or worse.
      if (Object.hasOwn(value, '__proto__')) throw badBody(['__proto__'], 'is not allowed as a key')
      for (const member of Object.values(value)) below.push(member)
    }
    level = below
  }
}

/** The path of the first field that the schema dropped: a misspelt field would be lost without a word. */
function unknownField(input: unknown, checked: unknown): PropertyKey[] | undefined {
  if (!isObject(input) || !isObject(checked) || input === checked) return undefined
  for (const key of Object.keys(input)) {
    if (!Object.hasOwn(checked, key)) return [key]
    const deeper = unknownField(input[key], checked[key])
    if (deeper !== undefined) return [key, ...deeper]
  }
  return undefined
}

function badBody(path: readonly PropertyKey[], why: string): ServoError {
  const field = path.map(String).join('.')
  return new ServoError('invalid', 'bad_body', `${field === '' ? 'the body' : field}: ${why}`, {
    hint: 'Fix the request: repeating it unchanged will fail again.',
    facts: field === '' ? {} : { field },
  })
}

const tooLarge = (): ServoError =>
  new ServoError('invalid', 'body_too_large', `the body has more than ${MAX_BYTES} bytes`, {
    hint: 'Store large values as objects and send a reference to them.',
  })
