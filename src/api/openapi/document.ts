import { z } from 'zod'
import { problemDetails } from '../problem.ts'
import { isStreamed } from '../routing/answer.ts'
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
export function problemsOf({ needs, query, body, problems = [] }: Route): number[] {
  const isForSenders = needs === 'signature'
  const rules: readonly [boolean, readonly number[]][] = [
    [query !== 'ignored', [400]],
    [body !== undefined, [400, 413, 415]],
    [needs !== 'nothing' && !isForSenders, [401]],
    // Strangers are refused by Host and Origin, everywhere but where senders come from elsewhere.
    [!isForSenders, [403]],
    [true, [429, 500, 503]],
  ]
  const ruled = rules.flatMap(([applies, statuses]) => (applies ? statuses : []))
  return [...new Set([...ruled, ...problems])].sort((a, b) => a - b)
}

function operationOf(route: Route, schemas: JsonSchemas): Json {
  const { operation, summary, needs, body, example } = route
  const parameters = [...pathParameters(route), ...queryParameters(route, schemas)]
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
        content: { [JSON_TYPE]: { schema: bodySchema(body, schemas), ...(example !== undefined && { example }) } },
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

function answersOf({ answer, statuses, isTagged }: Route, schemas: JsonSchemas): Json {
  const described = (description: string, more: Json = {}): Json =>
    Object.fromEntries(statuses.map((status) => [String(status), { description, ...more }]))
  if (answer === 'nothing') return described('Nothing but headers.')
  if (answer instanceof z.ZodType) {
    const content = { [JSON_TYPE]: { schema: schemas.ofAnswer(answer) } }
    if (!isTagged) return described('The answer.', { content })
    const headers = { etag: { description: 'Names this version of the answer.', schema: { type: 'string' } } }
    return {
      ...described('The answer.', { headers, content }),
      304: { description: 'The answer is still the one that `if-none-match` names.', headers },
    }
  }
  if (!isStreamed(answer)) return described('The answer.', { content: { [answer.text]: { schema: { type: 'string' } } } })
  const schema = schemas.ofAnswer(answer.each)
  const isLines = answer.type === 'application/x-ndjson'
  const what = isLines ? 'One JSON object per line' : 'Server-sent events whose data is JSON'
  // `itemSchema` is what later versions of OpenAPI call it; readers of 3.1 look past names that begin with x-.
  return described(`${what}, each sent at once.`, {
    content: { [answer.type]: { schema: { type: 'string' }, 'x-itemSchema': schema } },
  })
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

function queryParameters({ query, isTagged }: Route, schemas: JsonSchemas): Json[] {
  const declared = query === undefined || query === 'ignored' ? [] : Object.entries<z.ZodType>(query.shape)
  const shown = declared.map(([name, field]) => {
    const { description, ...schema } = schemas.ofRequest(field)
    const isRepeated = z.globalRegistry.get(field)?.['repeated'] === true
    return {
      name,
      in: 'query',
      ...(description !== undefined && { description }),
      schema: isRepeated ? { type: 'array', items: schema } : schema,
    }
  })
  const tag = {
    name: 'if-none-match',
    in: 'header',
    description: 'The `etag` that the caller has.',
    schema: { type: 'string' },
  }
  return isTagged ? [...shown, tag] : shown
}

/** A request that has an id may call it by two names. */
function bodySchema(body: z.ZodType, schemas: JsonSchemas): JsonSchema {
  const schema = schemas.ofRequest(body)
  const { request_id: id } = schema.properties ?? {}
  if (typeof id !== 'object') return schema
  const other = { ...id, description: 'The same as `request_id`, as is the header `Idempotency-Key`. Give one of them.' }
  return { ...schema, properties: { ...schema.properties, client_request_id: other } }
}

/** `runs` for everything below `/runs`. */
function tagOf({ path, needs }: Route): string {
  if (!path.startsWith(BASE)) return needs === 'signature' ? 'messages' : 'server'
  const [, first = ''] = path.slice(BASE.length).split('/')
  return first === 'leader' ? 'server' : first
}
