import type { IncomingMessage, ServerResponse } from 'node:http'
import type { MiddlewareHandler } from 'hono'
import { connectionOf } from './access/connection.ts'

/** A refused caller may still send this much: a small body was already on its way. */
const LINGER_BYTES = 1 << 20
/** Long enough for the caller to read the answer, even on a busy machine. */
const LINGER_MS = 500

/**
 * Answers without reading the rest of a body whose caller was refused, or which is too large. Node would read it to its end,
 * however long it is, to use the connection again.
 */
export const leaveUnread: MiddlewareHandler = async (c, next) => {
  await next()
  const { incoming, outgoing } = connectionOf(c)
  if (incoming === undefined || outgoing === undefined || incoming.complete) return
  // A body that declares a small length is small: Node reads no further, and the connection can be used again.
  if (Number(incoming.headers['content-length'] ?? Number.NaN) <= LINGER_BYTES) return
  c.header('connection', 'close')
  closeGently(incoming, outgoing)
}

/**
 * Sends the answer, ends our side of the connection, and waits a moment before closing it: a connection that is closed while
 * the caller still sends is reset, and the caller loses the answer that it has not read yet.
 */
function closeGently(incoming: IncomingMessage, outgoing: ServerResponse): void {
  const { socket } = incoming
  // Node calls this to close the connection after the answer.
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
