import { z } from 'zod'
import { ServoError } from '../../lib/error.ts'
import { textAnswer } from '../routing/answer.ts'
import { openRoute, type Route, route } from '../routing/route.ts'

/** What programs that watch a server ask. */
export interface ProbesApi {
  /** What keeps the server from its work now; empty if nothing does. */
  unready(): Promise<readonly string[]>
  /** Everything that is counted, as Prometheus reads it. */
  metrics(): string
}

const PROMETHEUS = { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }

/** Whether the server can work, for anybody, and what it has counted, for those who have a token. */
export const probeRoutes = (probes: ProbesApi): Route[] => [
  openRoute({
    method: 'GET',
    path: '/health/ready',
    operation: 'isReady',
    summary: 'Says whether the server can work; otherwise the problem says what is missing.',
    query: 'ignored',
    answer: z.object({ ok: z.literal(true) }),
    handle: async () => {
      const reasons = await probes.unready()
      if (reasons.length > 0) throw notReady(reasons)
      return { ok: true as const }
    },
  }),
  route({
    method: 'GET',
    path: '/metrics',
    operation: 'getMetrics',
    summary: 'Shows what the server has counted, as Prometheus reads it.',
    needs: 'viewer',
    answer: textAnswer('text/plain'),
    query: 'ignored',
    handle: () => new Response(probes.metrics(), { headers: PROMETHEUS }),
  }),
]

const notReady = (reasons: readonly string[]): ServoError =>
  new ServoError('unavailable', 'not_ready', `this server is not ready: ${reasons.join('; ')}`, {
    hint: 'The log of the server says more.',
  })
