import { z } from 'zod'
import { id as anyId } from '../../model/envelope.ts'
import { problemDetails } from '../problem.ts'
import { readParameters } from '../request/reads.ts'
import { type Answer, isEither, isStreamed } from '../routing/answer.ts'
import { BASE, type Need, type Route } from '../routing/route.ts'
import { type JsonSchema, JsonSchemas } from './json-schemas.ts'

type Json = Record<string, unknown>

const JSON_TYPE = 'application/json'

/** The OpenAPI document of these routes. The same routes give the same text. */
export function openApiOf(routes: readonly Route[]): Json {
  const schemas = new JsonSchemas()
  const problemSchema = schemas.ofAnswer(problemDetails)
  const paths: Record<string, Json> = {}
  const sorted = [...routes].sort((a, b) => (a.path === b.path ? 0 : a.path < b.path ? -1 : 1))
  for (const route of sorted) {
    const path = route.path.replaceAll(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route, schemas) }
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'Servo',
      version: '1',
      description:
        'The HTTP API of a Servo server. Changes are answered with 202 once they are durable. Errors are problem details with a stable `code`, and usually a `hint` that says what to do.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    tags: [...new Set(sorted.map(tagOf))].sort().map((name) => ({ name })),
    paths,
    components: {
      securitySchemes,
      schemas: schemas.components,
      responses: Object.fromEntries(
        Object.entries(meanings).map(([status, description]) => [
          responseName(Number(status)),
          {
            description,
            ...headersOf[Number(status)],
            content: { 'application/problem+json': { schema: problemSchema } },
          },
        ]),
      ),
    },
  }
}

const securitySchemes: Json = {
  token: {
    type: 'http',
    scheme: 'bearer',
    description: 'A token made by `servo tokens create`. The scope of an operation is the role that it needs.',
  },
  task_token: {
    type: 'http',
    scheme: 'bearer',
    description: 'The `task_token` of a dispatch, which is for one attempt. Heartbeats get a new one in time.',
  },
  signature: {
    type: 'apiKey',
    in: 'header',
    name: 'webhook-signature',
    description:
      'A signature of the message by the rules of Standard Webhooks, or what else the sensor asks for: a signature as GitHub makes it, a token, or the token of a push that Google has signed.',
  },
}

function securityOf(need: Need): Json[] {
  if (need === 'nothing') return []
  if (need === 'task_token') return [{ task_token: [] }]
  // A sensor may ask its senders for nothing.
  if (need === 'signature') return [{ signature: [] }, {}]
  return [{ token: [need] }]
}

/** What problems mean, by their status. */
const meanings: Readonly<Record<number, string>> = {
  400: 'The request is wrong: `field` says where, `hint` what to do.',
  401: 'The request has no token that counts, or no valid signature.',
  403: 'The role of the token does not suffice, the token is for something else, or the request comes from another site.',
  404: 'What the request names does not exist.',
  409: 'The request contradicts what is on record, or the present state.',
  413: 'The body is too large.',
  415: 'The body is of a type that is not read here.',
  422: 'The request can be read, but does not fit: what was sent is not what the receiver takes.',
  429: 'Too many requests. `retry-after` says when to ask again.',
  500: 'Something is wrong with Servo, or with the code of a sensor.',
  503: 'Something that the server needs is unavailable. `retry-after` says when to ask again.',
  504: 'What was waited for has not happened in time.',
}

const retryAfter = { headers: { 'retry-after': { description: 'Seconds.', schema: { type: 'integer' } } } }
const headersOf: Readonly<Record<number, Json>> = { 429: retryAfter, 503: retryAfter }

const responseName = (status: number): string => `Problem${status}`

/** Every status of a problem that a route can give: those that follow from what it needs and takes, and its own. */
function problemsOf({ needs, query, body, does, problems = [] }: Route): number[] {
  const isForSenders = needs === 'signature'
  const rules: readonly [boolean, readonly number[]][] = [
    [query !== 'ignored', [400]],
    [body !== undefined, [400, 413, 415]],
    [needs !== 'nothing' && !isForSenders, [401]],
    // Strangers are refused by Host and Origin, everywhere but where senders come from elsewhere.
    [!isForSenders, [403]],
    // A read may wait for an event; a change may be under way under its id, or the id may be that of another.
    [does === 'read', [504]],
    [does === 'change', [409, 422]],
    [true, [429, 500, 503]],
  ]
  const ruled = rules.flatMap(([applies, statuses]) => (applies ? statuses : []))
  return [...new Set([...ruled, ...problems])].sort((a, b) => a - b)
}

function operationOf(route: Route, schemas: JsonSchemas): Json {
  const { operation, summary, needs, body, example } = route
  const parameters = [...pathParameters(route), ...queryParameters(route, schemas), ...headerParameters(route)]
  return {
    operationId: operation,
    summary,
    tags: [tagOf(route)],
    security: securityOf(needs),
    ...(parameters.length > 0 && { parameters }),
    ...(body !== undefined && {
      requestBody: {
        // No body at all is an empty object.
        required: !body.safeParse({}).success,
        content: { [JSON_TYPE]: { schema: bodySchema(route, body, schemas), ...(example !== undefined && { example }) } },
      },
    }),
    ...(needs === 'signature' && route.method === 'POST' && { requestBody: anyMessage }),
    responses: {
      ...answersOf(route, schemas),
      ...Object.fromEntries(
        problemsOf(route).map((status) => [String(status), { $ref: `#/components/responses/${responseName(status)}` }]),
      ),
    },
  }
}

const anyMessage: Json = {
  description: 'The message: JSON, text, a form, or a CloudEvent.',
  content: {
    [JSON_TYPE]: { schema: {} },
    'application/cloudevents+json': { schema: {} },
    'text/plain': { schema: { type: 'string' } },
  },
}

function answersOf({ answer, statuses, isTagged, does }: Route, schemas: JsonSchemas): Json {
  const described = (description: string, more: Json = {}): Json =>
    Object.fromEntries(statuses.map((status) => [String(status), status === 204 ? nothingMore : { description, ...more }]))
  if (answer === 'nothing') return described('Nothing but headers.')
  const content = contentOf(answer, schemas)
  if (isEither(answer)) return described('A page; or what pages are made of, one by one, each sent at once.', { content })
  if (isStreamed(answer)) return described(`${streams[answer.type]}, each sent at once.`, { content })
  if (isTagged) {
    const headers = { etag: { description: 'Names this version of the answer.', schema: { type: 'string' } } }
    return {
      ...described('The answer.', { headers, content }),
      304: { description: 'The answer is still the one that `if-none-match` names.', headers },
    }
  }
  return described('The answer.', { ...(does === 'change' && { headers: replay }), content })
}

const nothingMore: Json = { description: 'Nothing more will ever come, and the caller has seen everything.' }

const replay: Json = {
  'idempotency-replayed': {
    description: '`true` if the request was made before under this id: this is the first answer again.',
    schema: { type: 'string' },
  },
}

const streams = {
  'application/x-ndjson': 'One JSON object per line',
  'text/event-stream': 'Server-sent events whose data is JSON',
} as const

function contentOf(answer: Exclude<Answer, 'nothing'>, schemas: JsonSchemas): Json {
  if (answer instanceof z.ZodType) return { [JSON_TYPE]: { schema: schemas.ofAnswer(answer) } }
  if (isEither(answer)) return { ...contentOf(answer.page, schemas), ...contentOf(answer.stream, schemas) }
  // `itemSchema` is what later versions of OpenAPI call it; readers of 3.1 look past names that begin with x-.
  if (isStreamed(answer))
    return { [answer.type]: { schema: { type: 'string' }, 'x-itemSchema': schemas.ofAnswer(answer.each) } }
  return { [answer.text]: { schema: { type: 'string' } } }
}

function pathParameters({ path }: Route): Json[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    description: 'Percent-encoded, slashes too.',
    schema: { type: 'string', minLength: 1 },
  }))
}

function queryParameters({ query, does }: Route, schemas: JsonSchemas): Json[] {
  const own = query === undefined || query === 'ignored' ? {} : query.shape
  const declared = Object.entries<z.ZodType>({ ...own, ...(does === 'read' && readParameters.shape) })
  return declared.map(([name, field]) => {
    const { description, ...schema } = schemas.ofRequest(field)
    const isRepeated = z.globalRegistry.get(field)?.['repeated'] === true
    return {
      name,
      in: 'query',
      ...(description !== undefined && { description }),
      schema: isRepeated ? { type: 'array', items: schema } : schema,
    }
  })
}

function headerParameters({ isTagged, does, body }: Route): Json[] {
  const taken = [
    ...(isTagged ? [['if-none-match', 'The `etag` that the caller has.']] : []),
    // A request with a body has its id there.
    ...(does === 'change' && body === undefined ? [['idempotency-key', ID_MEANS]] : []),
  ]
  return taken.map(([name, description]) => ({ name, in: 'header', description, schema: { type: 'string' } }))
}

const ID_MEANS = 'Names the request: repeated under the same id it changes nothing, and gets the first answer.'

/** A change may be asked for under an id, which has several names. */
function bodySchema({ does }: Route, body: z.ZodType, schemas: JsonSchemas): JsonSchema {
  const schema = schemas.ofRequest(body)
  if (does !== 'change' || schema.properties === undefined) return schema
  const { request_id: declared } = schema.properties
  const id = typeof declared === 'object' ? declared : { ...schemas.ofRequest(anyId), description: ID_MEANS }
  const other = { ...id, description: 'The same as `request_id`, as is the header `Idempotency-Key`. Give one of them.' }
  return { ...schema, properties: { ...schema.properties, request_id: id, client_request_id: other } }
}

/** `runs` for everything below `/runs`. */
function tagOf({ path, needs }: Route): string {
  if (!path.startsWith(BASE)) return needs === 'signature' ? 'messages' : 'server'
  const [, first = ''] = path.slice(BASE.length).split('/')
  return first === 'leader' ? 'server' : first
}
