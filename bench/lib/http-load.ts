import { connect, type Socket } from 'node:net'

/** One connection that asks for the same, again and again. Node's own client would cost more than the server that is measured. */
export class Asker {
  readonly #socket: Socket
  #heard = ''
  #waiting: ((status: number) => void) | undefined
  #failed: ((error: Error) => void) | undefined

  constructor(port: number) {
    this.#socket = connect(port, '127.0.0.1').setNoDelay().setEncoding('latin1')
    this.#socket.on('data', (chunk: string) => this.#hear(chunk))
    const lost = (error = new Error('the connection was closed')): void => this.#failed?.(error)
    this.#socket.on('error', lost).on('close', () => lost())
  }

  /** Resolves with the status once the whole answer is here. */
  ask(request: string): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#waiting = resolve
      this.#failed = reject
      this.#socket.write(request)
    })
  }

  close(): void {
    this.#failed = undefined
    this.#socket.destroy()
  }

  #hear(chunk: string): void {
    this.#heard += chunk
    const end = this.#heard.indexOf('\r\n\r\n')
    if (end < 0) return
    const [, length] = /\r\ncontent-length: *(\d+)/i.exec(this.#heard.slice(0, end)) ?? []
    const isWhole = length === undefined ? this.#heard.endsWith('0\r\n\r\n') : this.#heard.length >= end + 4 + Number(length)
    if (!isWhole) return
    const status = Number(this.#heard.slice(9, 12))
    this.#heard = ''
    this.#waiting?.(status)
  }
}

export const requestOf = (
  method: string,
  path: string,
  { port, token, body = '' }: { port: number; token: string; body?: string },
): string =>
  [
    `${method} ${path} HTTP/1.1`,
    `host: 127.0.0.1:${port}`,
    `authorization: Bearer ${token}`,
    ...(body === '' ? [] : ['content-type: application/json', `content-length: ${Buffer.byteLength(body)}`]),
    '',
    body,
  ].join('\r\n')
