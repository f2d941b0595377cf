import type { IncomingMessage } from 'node:http'
import { type ErrorKind, messageOf, ServoError } from '../lib/error.ts'
import { isObject } from '../lib/is-object.ts'

// Not `fetch`: a command that asks one question would spend most of its time loading it. Nor an import of `node:http`: Node
// copies every export of a module that is imported, and some of these load `fetch`.
const { request } = process.getBuiltinModule('node:http')
/** Loaded only for a server elsewhere. */
const requestOver = (url: string): typeof request =>
  url.startsWith('https:') ? process.getBuiltinModule('node:https').request : request

export interface ClientOptions {
  /** Without a slash at the end. */
  readonly url: string
  readonly token: string
}

interface Asked {
  readonly body?: unknown
  readonly user?: string
  readonly traceparent?: string | undefined
}

const kindOfStatus: Readonly<Record<number, ErrorKind>> = {
  404: 'not_found',
  409: 'conflict',
  422: 'conflict',
  500: 'bug',
  503: 'unavailable',
}

const TRY_AGAIN = 'The server goes on trying. Ask again in a moment; if it stays so, look at what it prints.'

/** A server that lives answers this at once, unless its machine is very busy. */
const ALIVE_MS = 2_000
/** Longer than a server waits for its storage, and than it takes to go through a million partitions. */
const ANSWER_MS = 120_000

/** Sends requests to a server and reads its answers. A refusal is thrown as the error that the server had. */
export class Connection {
  readonly #options: ClientOptions

  constructor(options: ClientOptions) {
    this.#options = options
  }

  /** `T` is the answer of this route by the contract. The server is our own, so its answers are not checked again. */
  async json<T>(method: string, path: string, options: Asked = {}): Promise<T> {
    const signal = AbortSignal.timeout(ANSWER_MS)
    const response = await this.#ask(method, path, { ...options, signal })
    const answer = this.#parsed<T>(await textOf(response).catch((error: unknown) => this.#refuse(error, signal)))
    // The first answer again: what it created was created then.
    const isRepeated = response.headers['idempotency-replayed'] === 'true'
    return isRepeated && isObject(answer) && answer['created'] === true ? { ...answer, created: false } : answer
  }

  async isThere(instance: string): Promise<boolean> {
    try {
      const answer = await send(`${this.#options.url}/health/live`, { method: 'GET', signal: AbortSignal.timeout(ALIVE_MS) })
      return (JSON.parse(await textOf(answer)) as { instance?: string }).instance === instance
    } catch {
      return false
    }
  }

  /** Yields one answer per line, as they come; `T` as for `json`. */
  async *lines<T>(path: string, signal?: AbortSignal): AsyncGenerator<T> {
    for await (const line of this.texts(path, signal)) yield JSON.parse(line)
  }

  /** Yields the lines of an answer that are not empty, as they come. */
  async *texts(path: string, signal?: AbortSignal): AsyncGenerator<string> {
    const response = await this.#ask('GET', path, signal === undefined ? {} : { signal })
    let rest = ''
    try {
      for await (const chunk of response.setEncoding('utf8')) {
        const parts = (rest + chunk).split('\n')
        rest = parts.pop() ?? ''
        for (const line of parts) if (line !== '') yield line
      }
    } catch (error) {
      if (signal?.aborted) return
      throw new ServoError('unavailable', 'connection_lost', 'the server went away', { cause: error })
    }
  }

  async #ask(
    method: string,
    path: string,
    { body, user, traceparent, signal }: Asked & { signal?: AbortSignal },
  ): Promise<IncomingMessage> {
    const { url, token } = this.#options
    const headers = {
      authorization: `Bearer ${token}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(user !== undefined && { 'x-servo-user': user }),
      ...(traceparent !== undefined && { traceparent }),
    }
    const response = await send(`${url}/api/v1/orchestration${path}`, {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal !== undefined && { signal }),
    }).catch((error: unknown) => this.#refuse(error, signal))
    const { statusCode = 0 } = response
    if (statusCode >= 200 && statusCode < 300) return response
    throw await refusalOf(response)
  }

  /** Another program may answer at an address that somebody wrote down. */
  #parsed<T>(text: string): T {
    try {
      return JSON.parse(text) as T
    } catch {
      throw new ServoError('unavailable', 'not_servo', `${this.#options.url} answers, but is no Servo server`, {
        hint: 'Check the address: --url or SERVO_URL.',
      })
    }
  }

  #refuse(error: unknown, signal: AbortSignal | undefined): never {
    const why = messageOf(signal?.aborted ? signal.reason : error)
    const hint = 'It may have just ended or be too busy. Try again; if it stays so, stop it and start it anew.'
    const isRefused = error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED'
    const code = isRefused ? 'not_reached' : 'no_answer'
    throw new ServoError('unavailable', code, `${this.#options.url} does not answer: ${why}`, { hint, cause: error })
  }
}

interface Sent {
  readonly method: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly signal?: AbortSignal
}

async function send(url: string, { body, ...options }: Sent): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  requestOver(url)(url, options, resolve).on('error', reject).end(body)
  return await promise
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) text += chunk
  return text
}

interface Problem {
  readonly detail?: string
  readonly code?: string
  readonly hint?: string
}

async function refusalOf(response: IncomingMessage): Promise<ServoError> {
  const { statusCode: status = 0 } = response
  const problem: Problem = await textOf(response)
    .then(JSON.parse)
    .catch(() => ({}))
  const kind = kindOfStatus[status] ?? (status >= 500 ? 'unavailable' : 'invalid')
  const hint = problem.hint ?? (kind === 'unavailable' ? TRY_AGAIN : undefined)
  return new ServoError(kind, problem.code ?? 'refused', problem.detail ?? `the server answered ${status}`, {
    ...(hint !== undefined && { hint }),
  })
}

/** `?name=value` for every name that has a value, repeated for a list. */
export function queryText(values: Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(values)) for (const each of [value ?? []].flat()) query.append(name, String(each))
  return query.size === 0 ? '' : `?${query}`
}
