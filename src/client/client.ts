import type {
  AcceptedRun,
  LogQuery,
  NewRunBody,
  RerunBody,
  RunDetail,
  RunEvent,
  RunLogEntry,
  RunsApi,
  WireRow,
} from '../api/run-contract.ts'
import type { StatusApi } from '../api/status-contract.ts'
import { type ErrorKind, messageOf, ServoError } from '../lib/error.ts'
import { queryText } from './query-text.ts'
import { statusClient } from './status-client.ts'

export interface ClientOptions {
  /** Without a slash at the end. */
  readonly url: string
  readonly token: string
}

const kindOfStatus: Readonly<Record<number, ErrorKind>> = { 404: 'not_found', 409: 'conflict', 500: 'bug', 503: 'unavailable' }

/** Speaks to a server as if it were here: the same questions, the same answers, the same errors. */
export class ServoClient implements RunsApi {
  readonly statuses: StatusApi = statusClient((path) => this.#json('GET', path))
  readonly #options: ClientOptions

  constructor(options: ClientOptions) {
    this.#options = options
  }

  async request(run: NewRunBody, user: string): Promise<AcceptedRun> {
    return (await this.#json('POST', '/runs', { body: run, user })) as AcceptedRun
  }

  async cancel(
    runId: string,
    user: string,
    reason: string | undefined,
  ): Promise<{ run_id: string; accepted_event_id: string }> {
    const body = reason === undefined ? {} : { reason }
    return (await this.#json('POST', `/runs/${encodeURIComponent(runId)}/cancel`, { body, user })) as AcceptedRun
  }

  async rerun(runId: string, body: RerunBody, user: string): Promise<AcceptedRun> {
    return (await this.#json('POST', `/runs/${encodeURIComponent(runId)}/rerun`, { body, user })) as AcceptedRun
  }

  async list({ limit, state }: { limit: number; state?: string | undefined }): Promise<readonly WireRow[]> {
    const query = queryText({ limit, state })
    return ((await this.#json('GET', `/runs${query}`)) as { runs: WireRow[] }).runs
  }

  async get(runId: string): Promise<RunDetail> {
    return (await this.#json('GET', `/runs/${encodeURIComponent(runId)}`)) as RunDetail
  }

  logs(runId: string, { task, attempt }: LogQuery): AsyncIterable<RunLogEntry> {
    const query = queryText({ task, attempt })
    return this.#lines(`/runs/${encodeURIComponent(runId)}/logs${query}`) as AsyncIterable<RunLogEntry>
  }

  follow(runId: string, signal: AbortSignal): AsyncIterable<RunEvent> {
    return this.#lines(`/runs/${encodeURIComponent(runId)}/follow`, signal) as AsyncIterable<RunEvent>
  }

  async #json(method: string, path: string, options: { body?: unknown; user?: string } = {}): Promise<unknown> {
    return await (await this.#fetch(method, path, options)).json()
  }

  async *#lines(path: string, signal?: AbortSignal): AsyncGenerator<unknown> {
    const response = await this.#fetch('GET', path, signal === undefined ? {} : { signal })
    let rest = ''
    const decoder = new TextDecoder()
    try {
      for await (const chunk of response.body ?? []) {
        const parts = (rest + decoder.decode(chunk, { stream: true })).split('\n')
        rest = parts.pop() ?? ''
        for (const line of parts) if (line !== '') yield JSON.parse(line)
      }
    } catch (error) {
      if (signal?.aborted) return
      throw new ServoError('unavailable', 'connection_lost', 'the server went away', { cause: error })
    }
  }

  async #fetch(
    method: string,
    path: string,
    { body, user, signal }: { body?: unknown; user?: string; signal?: AbortSignal },
  ): Promise<Response> {
    const { url, token } = this.#options
    const headers: Record<string, string> = { authorization: `Bearer ${token}` }
    if (body !== undefined) headers['content-type'] = 'application/json'
    if (user !== undefined) headers['x-servo-user'] = user
    const response = await fetch(`${url}/api/v1/orchestration${path}`, {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal !== undefined && { signal }),
    }).catch((error: unknown) => {
      throw new ServoError('unavailable', 'no_answer', `${url} does not answer: ${messageOf(error)}`, { cause: error })
    })
    if (response.ok) return response
    throw await refused(response)
  }
}

async function refused(response: Response): Promise<ServoError> {
  const problem = (await response.json().catch(() => ({}))) as { detail?: string; code?: string; hint?: string }
  const kind = kindOfStatus[response.status] ?? (response.status >= 500 ? 'unavailable' : 'invalid')
  return new ServoError(kind, problem.code ?? 'refused', problem.detail ?? `the server answered ${response.status}`, {
    ...(problem.hint !== undefined && { hint: problem.hint }),
  })
}
