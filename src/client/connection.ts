import { type ErrorKind, messageOf, ServoError } from '../lib/error.ts'
import { type Received, type Sent, send, wholeText } from './transport.ts'

export interface ClientOptions {
  /** The address of the server, such as `http://127.0.0.1:4400`. */
  readonly url: string
  readonly token: string
  /** How often a request that may be repeated is sent again while the server asks to wait (429, 503); 3 times if absent. */
  readonly retries?: number
  /** How long the server may wait for its storage before it answers that it is down; about a second if absent. */
  readonly waitSec?: number
  /** Ends every request of this client. */
  readonly signal?: AbortSignal | undefined
  /** What to do if nobody answers, if the caller knows better. */
  readonly ifSilent?: string
}

interface Asked {
  readonly body?: object
  readonly user?: string | undefined
  readonly traceparent?: string | undefined
}

const RETRIES = 3

const kindOfStatus: Readonly<Record<number, ErrorKind>> = {
  404: 'not_found',
  409: 'conflict',
  429: 'unavailable',
  500: 'bug',
  503: 'unavailable',
}

const TRY_AGAIN = 'The server goes on trying. Ask again in a moment; if it stays so, look at what it prints.'

/** A server that lives answers this at once, unless its machine is very busy. */
const ALIVE_MS = 2_000
/** Longer than a server waits for its storage, and than it takes to go through a million partitions. */
const ANSWER_MS = 120_000
/** Nobody waits longer for an answer that may be had by asking again. */
const MAX_WAIT_MS = 30_000

/** Sends requests to a server and reads its answers. A refusal is thrown as the error that the server had. */
export class Connection {
  readonly options: ClientOptions
  readonly #url: string

  constructor(options: ClientOptions) {
    this.options = options
    this.#url = options.url.replace(/\/+$/, '')
  }

  /** `T` is the answer of this route by the contract. The server is our own, so its answers are not checked again. */
  async json<T>(method: string, path: string, asked: Asked = {}): Promise<T> {
    const signal = AbortSignal.any([AbortSignal.timeout(ANSWER_MS), ...[this.options.signal ?? []].flat()])
    const received = await this.#ask(method, path, { ...asked, signal })
    return this.#parsed(await wholeText(received).catch((error: unknown) => this.#refuse(error, signal)))
  }

  /** The address of the server. */
  get url(): string {
    return this.#url
  }

  async isThere(instance: string): Promise<boolean> {
    try {
      const answer = await send(`${this.#url}/health/live`, { method: 'GET', signal: AbortSignal.timeout(ALIVE_MS) })
      const found: { instance?: string } = JSON.parse(await wholeText(answer))
      return found.instance === instance
    } catch {
      return false
    }
  }

  /** Yields one answer per line, as they come; `T` as for `json`. */
  async *lines<T>(path: string, ...more: readonly (AbortSignal | undefined)[]): AsyncGenerator<T> {
    const signals = [this.options.signal, ...more].filter((each) => each !== undefined)
    const signal = signals.length === 0 ? undefined : AbortSignal.any(signals)
    const received = await this.#ask('GET', path, signal === undefined ? {} : { signal })
    let rest = ''
    try {
      for await (const chunk of received.chunks()) {
        const parts = (rest + chunk).split('\n')
        rest = parts.pop() ?? ''
        for (const line of parts) if (line !== '') yield JSON.parse(line)
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
  ): Promise<Received> {
    const { token, retries = RETRIES, waitSec } = this.options
    const sent: Sent = {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(user !== undefined && { 'x-servo-user': user }),
        ...(traceparent !== undefined && { traceparent }),
        ...(waitSec !== undefined && { prefer: `wait=${waitSec}` }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal !== undefined && { signal }),
    }
    for (let left = mayRepeat(method, body) ? retries : 0; ; left--) {
      const received = await send(`${this.#url}${path.startsWith('/auth/') ? '' : '/api/v1/orchestration'}${path}`, sent).catch(
        (error: unknown) => this.#refuse(error, signal),
      )
      const { status } = received
      if (status >= 200 && status < 300) return received
      const refusal = await refusalOf(received)
      const isBusy = status === 429 || status === 503
      if (!isBusy || left <= 0) throw refusal
      await pause(waitMsOf(received), signal).catch(() => this.#refuse(refusal, signal))
    }
  }

  /** Another program may answer at an address that somebody wrote down. */
  #parsed<T>(text: string): T {
    try {
      return JSON.parse(text)
    } catch {
      throw new ServoError('unavailable', 'not_servo', `${this.#url} answers, but is no Servo server`, {
        hint: 'Check the address: --url or SERVO_URL.',
      })
    }
  }

  #refuse(error: unknown, signal: AbortSignal | undefined): never {
    // Whoever asked has given up, and knows why.
    if (this.options.signal?.aborted) throw this.options.signal.reason
    const why = messageOf(signal?.aborted ? signal.reason : error)
    const hint =
      this.options.ifSilent ?? 'It may have just ended or be too busy. Try again; if it stays so, stop it and start it anew.'
    const isRefused = error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED'
    const code = isRefused ? 'not_reached' : 'no_answer'
    throw new ServoError('unavailable', code, `${this.#url} does not answer: ${why}`, { hint, cause: error })
  }
}

/** By these a server recognizes a request that it has seen. */
const names = ['request_id', 'client_request_id', 'report_id', 'key']

/** True if a request changes nothing, or changes nothing again when it is sent twice. */
function mayRepeat(method: string, body: object | undefined): boolean {
  if (method === 'GET') return true
  const given = new Map<string, unknown>(Object.entries(body ?? {}))
  return names.some((name) => given.get(name) !== undefined)
}

/** How long the server asks to wait, a second if it does not say. */
function waitMsOf(received: Received): number {
  const seconds = Number(received.header('retry-after') ?? 1)
  return Math.min(Number.isFinite(seconds) ? seconds * 1_000 : 1_000, MAX_WAIT_MS)
}

/** Rejects as soon as the signal fires. */
async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  const end = (): void => reject(signal?.reason)
  if (signal?.aborted) end()
  signal?.addEventListener('abort', end, { once: true })
  try {
    await promise
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', end)
  }
}

async function refusalOf(received: Received): Promise<ServoError> {
  const { status } = received
  const problem: Record<string, unknown> = await wholeText(received)
    .then(JSON.parse)
    .catch(() => ({}))
  const kind = kindOfStatus[status] ?? (status >= 500 ? 'unavailable' : 'invalid')
  const { type: _, title: __, detail, code, hint: given, ...facts } = problem
  const hint = typeof given === 'string' ? given : kind === 'unavailable' ? TRY_AGAIN : undefined
  return new ServoError(
    kind,
    typeof code === 'string' ? code : 'refused',
    typeof detail === 'string' ? detail : `the server answered ${status}`,
    { ...(hint !== undefined && { hint }), facts: { ...facts, status } },
  )
}

/** `?name=value` for every name that has a value, repeated for a list. */
export function queryText(values: Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(values)) for (const each of [value ?? []].flat()) query.append(name, String(each))
  return query.size === 0 ? '' : `?${query}`
}
