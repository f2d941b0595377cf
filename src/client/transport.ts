/** What is sent to a server. */
export interface Sent {
  readonly method: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly signal?: AbortSignal
}

/** What it answers, read once: as a whole, or as it comes. */
export interface Received {
  readonly status: number
  header(name: string): string | undefined
  chunks(): AsyncIterable<string>
}

export async function wholeText(received: Received): Promise<string> {
  let text = ''
  for await (const chunk of received.chunks()) text += chunk
  return text
}

/** Sends a request, in a browser as in Node. */
export const send = (url: string, sent: Sent): Promise<Received> => (isNode() ? sendByNode(url, sent) : sendByFetch(url, sent))

const isNode = (): boolean => typeof process === 'object' && typeof process.getBuiltinModule === 'function'

// Not `fetch`: a command that asks one question would spend most of its time loading it. Nor an import of `node:http`: Node
// copies every export of a module that is imported, and some of these load `fetch`; and a browser has no such module.
async function sendByNode(url: string, { body, ...options }: Sent): Promise<Received> {
  const { request } = url.startsWith('https:') ? process.getBuiltinModule('node:https') : process.getBuiltinModule('node:http')
  type Response = Parameters<NonNullable<Parameters<typeof request>[2]>>[0]
  const { promise, resolve, reject } = Promise.withResolvers<Response>()
  request(url, options, resolve).on('error', reject).end(body)
  const response = await promise
  return {
    status: response.statusCode ?? 0,
    header: (name) => {
      const value = response.headers[name]
      return typeof value === 'string' ? value : undefined
    },
    chunks: () => response.setEncoding('utf8'),
  }
}

async function sendByFetch(url: string, sent: Sent): Promise<Received> {
  // The token is in a header: cookies would only add whose they are.
  const response = await fetch(url, { ...sent, credentials: 'omit' })
  return {
    status: response.status,
    header: (name) => response.headers.get(name) ?? undefined,
    chunks: () => textIn(response.body),
  }
}

async function* textIn(body: ReadableStream<Uint8Array> | null): AsyncGenerator<string> {
  if (body === null) return
  const reader = body.getReader()
  const decoder = new TextDecoder()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield decoder.decode(value, { stream: true })
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}
