import { z } from 'zod'
import { sha256 } from '../../lib/hash.ts'
import type { Told } from '../answers/told.ts'
import { checkAnswer } from './check-answer.ts'

/** What a route answers with if all goes well: JSON of a schema, a stream of JSON, either, text of another type, or nothing but headers. */
export type Answer = z.ZodType | StreamedAnswer | EitherAnswer | TextAnswer | 'nothing'

/** One JSON object after the other, each sent as soon as there is one. */
interface StreamedAnswer<S extends z.ZodType = z.ZodType> {
  readonly each: S
  readonly type: 'application/x-ndjson' | 'text/event-stream'
}

/** A page, or a stream of what pages are made of: whichever the caller asks for. */
interface EitherAnswer<P extends z.ZodType = z.ZodType, S extends z.ZodType = z.ZodType> {
  readonly page: P
  readonly stream: StreamedAnswer<S>
}

interface TextAnswer {
  readonly text: string
}

/** A stream with one JSON object per line. */
export const lines = <S extends z.ZodType>(each: S): StreamedAnswer<S> => ({ each, type: 'application/x-ndjson' })

/** Server-sent events. The handler sends them itself: it knows their ids, and what to do about slow readers. */
export const serverSent = <S extends z.ZodType>(each: S): StreamedAnswer<S> => ({ each, type: 'text/event-stream' })

/** A page, unless the caller asks for the stream. */
export const pageOr = <P extends z.ZodType, S extends z.ZodType>(page: P, stream: StreamedAnswer<S>): EitherAnswer<P, S> => ({
  page,
  stream,
})

/** A text of this media type. */
export const textAnswer = (type: string): TextAnswer => ({ text: type })

/** What the handler of a route returns. */
export type Handled<A> = A extends z.ZodType
  ? Told<A> | Reply<Told<A>>
  : A extends StreamedAnswer<infer S>
    ? AsyncIterable<Told<S>> | Response
    : A extends EitherAnswer<infer P, infer S>
      ? Told<P> | AsyncIterable<Told<S>> | Response
      : Response

/** What is sent as JSON, with a status of its own. */
class Reply<T> {
  readonly value: T
  readonly status: number
  readonly headers: Readonly<Record<string, string>>

  constructor(value: T, status: number, headers: Readonly<Record<string, string>>) {
    this.value = value
    this.status = status
    this.headers = headers
  }
}

/** Sends JSON with this status. */
export const answer = <T>(value: T, status: number, headers: Readonly<Record<string, string>> = {}): Reply<T> =>
  new Reply(value, status, headers)

interface RespondOptions {
  /** The status unless the handler chose another. */
  readonly status: number
  readonly checksAnswers: boolean
  readonly isTagged?: boolean | undefined
}

/** The response that is made of what a handler returned. */
export async function respond(
  request: Request,
  either: Answer,
  handled: unknown,
  { status, checksAnswers, isTagged = false }: RespondOptions,
): Promise<Response> {
  if (handled instanceof Response) return handled
  const declared = isEither(either) ? (isIterable(handled) ? either.stream : either.page) : either
  if (declared instanceof z.ZodType) {
    const reply = handled instanceof Reply ? handled : new Reply(handled, status, {})
    if (checksAnswers) checkAnswer(declared, reply.value)
    return isTagged ? tagged(request, reply) : json(JSON.stringify(reply.value), reply)
  }
  if (isStreamed(declared) && isIterable(handled))
    return await streamed(handled, (item) => {
      if (checksAnswers) checkAnswer(declared.each, item)
    })
  throw new TypeError('the handler of a route returned something else than it declares')
}

export const isStreamed = (declared: Answer): declared is StreamedAnswer => typeof declared === 'object' && 'each' in declared

export const isEither = (declared: Answer): declared is EitherAnswer => typeof declared === 'object' && 'page' in declared

const isIterable = (handled: unknown): handled is AsyncIterable<unknown> =>
  typeof handled === 'object' && handled !== null && Symbol.asyncIterator in handled

// Not `Response.json`: the server sends a body that is text in one piece, and that of any other response as a stream.
const json = (body: string, { status, headers }: Omit<Reply<unknown>, 'value'>): Response =>
  new Response(body, { status, headers: { 'content-type': 'application/json', ...headers } })

/** A caller that names the version it has gets nothing but the news that this is still the one. */
function tagged(request: Request, reply: Reply<unknown>): Response {
  const body = JSON.stringify(reply.value)
  const etag = `"${sha256(body).slice(0, 32)}"`
  const headers = { ...reply.headers, etag, 'cache-control': 'no-cache' }
  const had = (request.headers.get('if-none-match') ?? '').split(',').map((each) => each.trim().replace(/^W\//, ''))
  if (had.includes(etag) || had.includes('*')) return new Response(null, { status: 304, headers })
  return json(body, { status: reply.status, headers })
}

/** Sends one JSON object per line, each as soon as there is one. The first is awaited, so that an error still gets its own status. */
async function streamed(items: AsyncIterable<unknown>, check: (item: unknown) => void): Promise<Response> {
  const iterator = items[Symbol.asyncIterator]()
  const following = async (): Promise<IteratorResult<unknown>> => {
    const found = await iterator.next()
    if (!found.done) check(found.value)
    return found
  }
  let next = await following()
  const encoder = new TextEncoder()
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (next.done) {
        controller.close()
        return
      }
      controller.enqueue(encoder.encode(`${JSON.stringify(next.value)}\n`))
      next = await following()
    },
    async cancel() {
      await iterator.return?.()
    },
  })
  return new Response(body, { headers: { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' } })
}
