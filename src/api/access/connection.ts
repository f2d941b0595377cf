import type { IncomingMessage, ServerResponse } from 'node:http'

/** What Node knows of a request, if it came over a connection. */
export interface NodeConnection {
  readonly incoming?: IncomingMessage
  readonly outgoing?: ServerResponse
}

/** The adapter hands these over beside the request, without a type; a request of a test has none. */
export const connectionOf = ({ env }: { env: unknown }): NodeConnection => (env ?? {}) as NodeConnection
