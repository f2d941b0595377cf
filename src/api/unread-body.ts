import type { IncomingMessage, ServerResponse } from 'node:http'
import type { MiddlewareHandler } from 'hono'

/** As much as a caller may still send while it is told that nobody listens: a small body that was on its way. */
const LINGER_BYTES = 1 << 20
/** Long enough to read an answer, even on a busy machine. */
const LINGER_MS = 500

interface NodeRequest {
  readonly incoming?: IncomingMessage
  readonly outgoing?: ServerResponse
}

/**
 * Answers without reading the rest of a body that nobody wants: its caller was refused, or it is too large. Node would
 * read it to its end, however long it is, to use the connection again.
 */
export const leaveUnread: MiddlewareHandler = async (c, next) => {
  await next()
  const { incoming, outgoing } = (c.env ?? {}) as NodeRequest
  if (incoming === undefined || outgoing === undefined || incoming.complete) return
  // One that says it is small is: Node reads no further than it said, and the connection can be used again.
  if (Number(incoming.headers['content-length'] ?? Number.NaN) <= LINGER_BYTES) return
  c.header('connection', 'close')
  closeGently(incoming, outgoing)
}

/**
 * The answer, then our end of the connection, then for a moment nothing: a connection that is closed while the other side
 * still sends is reset, and with it goes the answer that was not read yet.
 */
function closeGently(incoming: IncomingMessage, outgoing: ServerResponse): void {
  const { socket } = incoming
  // What Node calls to close it after the answer.
  socket.destroySoon = () => void socket.end()
  outgoing.once('finish', () => setTimeout(() => socket.destroy(), LINGER_MS).unref())
  let read = 0
  incoming.on('data', (chunk: Buffer) => {
    read += chunk.length
    if (read <= LINGER_BYTES) return
    if (outgoing.writableFinished) socket.destroy()
    else incoming.pause()
  })
}
