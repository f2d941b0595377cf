import type { BlockList } from 'node:net'
import type { Hono } from 'hono'
import { z } from 'zod'
import { ServoError } from '../lib/error.ts'
import type { Access } from './access/access.ts'
import { callingClient, noteClient } from './access/client.ts'
import type { RefusedCalls } from './access/refused-calls.ts'
import { type OwnNames, refuseStrangers } from './access/strangers.ts'
import { alertRoutes } from './alerts/alert-routes.ts'
import { assetRoutes } from './asset-routes.ts'
import { backfillRoutes } from './automation/backfill-routes.ts'
import { scheduleRoutes } from './automation/schedule-routes.ts'
import { sensorRoutes } from './automation/sensor-routes.ts'
import { whyRoutes } from './automation/why-routes.ts'
import type { RequestLimits } from './limits/limits.ts'
import { openApiRoutes } from './openapi/openapi-routes.ts'
import { noteRoute } from './probes/route-templates.ts'
import { logged } from './problem.ts'
import { retentionRoutes } from './retention-routes.ts'
import { BASE, openRoute, type Route, route } from './routing/route.ts'
import { addRoutes, emptyRouter } from './routing/router.ts'
import { runRoutes } from './run-routes.ts'
import { statusRoutes } from './status-routes.ts'
import type { TokensApi } from './tokens/token-contract.ts'
import { tokenRoutes } from './tokens/token-routes.ts'
import { leaveUnread } from './unread-body.ts'
import type { WorkspaceApi } from './workspace-contract.ts'

export interface AppOptions extends WorkspaceApi {
  /** Decides who calls. */
  readonly access: Access
  /** Counts calls that are refused. */
  readonly refused?: Pick<RefusedCalls, 'notice'>
  readonly tokens: TokensApi
  /** Names that this server goes by. */
  readonly own: () => OwnNames
  /** Proxies that are believed what they say of callers. */
  readonly proxies?: (() => BlockList | undefined) | undefined
  /** How much is taken on at a time; anything if absent. */
  readonly limits?: RequestLimits
  /** Routes by which browsers sign in. */
  readonly login?: readonly Route[]
  /** Differs with every start of the server. */
  readonly instance: string
  /** Lets another process lead. Absent for a server, which leads until it is stopped. */
  readonly handOver?: () => void
  /** Routes for workers, which authenticate with tokens of their own. */
  readonly workers?: readonly Route[]
  /** True if each answer is compared with its schema before it is sent; by default in tests. */
  readonly checksAnswers?: boolean | undefined
  /** Told of every request that could not be answered because of an error of ours. */
  readonly onTrouble?: ((error: unknown) => void) | undefined
  /** Routes for senders of messages to sensors, which are known by their signatures. */
  readonly hooks?: readonly Route[]
  /** Routes for programs that watch the server. */
  readonly probes?: readonly Route[]
}

/** Every route of a server. There are no others: the router is made from this list. */
export function routesOf(options: Omit<AppOptions, 'access' | 'own'>): Route[] {
  const routes = [
    ...(options.hooks ?? []),
    ...serverRoutes(options),
    ...(options.probes ?? []),
    ...(options.login ?? []),
    ...(options.workers ?? []),
    ...runRoutes(options.runs),
    ...statusRoutes(options.statuses),
    ...assetRoutes(options.assets),
    ...scheduleRoutes(options.schedules),
    ...sensorRoutes(options.sensors),
    ...backfillRoutes(options.backfills),
    ...whyRoutes(options.whys),
    ...retentionRoutes(options.retention),
    ...alertRoutes(options.alerts),
    ...tokenRoutes(options.tokens),
  ]
  return [...routes, ...openApiRoutes(routes)]
}

/** The whole API of a server on one machine: refuses strangers first, then routes, and then looks who calls. */
export function localApp(options: AppOptions): Hono {
  const { access, own, proxies = () => undefined, limits, refused, onTrouble, checksAnswers } = options
  const routes = routesOf(options)
  const isForSenders = ({ needs }: Route): boolean => needs === 'signature'
  const app = emptyRouter()
  app.use(noteClient(proxies))
  app.use(noteRoute)
  app.use(leaveUnread)
  // Ahead of the check of names: senders reach this server through a proxy or a tunnel, by a name that it does not know.
  // Refusals of messages are counted with the sensors that they protect.
  addRoutes(app, routes.filter(isForSenders), { access, limits, checksAnswers })
  app.use(async (c, next) => {
    await next()
    // A caller that hangs up is no trouble of ours.
    const trouble = c.error === undefined || c.req.raw.signal.aborted ? undefined : logged(c.req.raw, c.error)
    if (trouble !== undefined) onTrouble?.(trouble)
  })
  app.use(async (c, next) => {
    try {
      // A link on a page of another site may lead to a page of ours.
      const isPage = c.req.path === '/login' && c.req.header('sec-fetch-mode') === 'navigate'
      refuseStrangers(c.req.raw.headers, callingClient(c.req.raw), own(), { isPage })
    } catch (error) {
      refused?.notice(error, 'by Host or Origin', callingClient(c.req.raw).address)
      throw error
    }
    await next()
  })
  addRoutes(
    app,
    routes.filter((each) => !isForSenders(each)),
    {
      access,
      limits,
      checksAnswers,
      onFailed: (error, route, request) => refused?.notice(error, route, callingClient(request).address),
    },
  )
  return app
}

/** Routes about the process itself. */
const serverRoutes = ({ instance, handOver }: Pick<AppOptions, 'instance' | 'handOver'>): Route[] => [
  openRoute({
    method: 'GET',
    path: '/health/live',
    operation: 'isLive',
    summary: 'Says that the server answers, and which start of it this is.',
    query: 'ignored',
    answer: z.object({ ok: z.literal(true), instance: z.string() }),
    handle: () => ({ ok: true as const, instance }),
  }),
  route({
    method: 'POST',
    path: `${BASE}/leader/hand-over`,
    operation: 'handOver',
    summary: 'Asks a leader that leads only for a moment to give way to a server.',
    needs: 'admin',
    answer: z.object({ ok: z.literal(true) }),
    problems: [409],
    statuses: [202],
    handle: () => {
      if (handOver === undefined)
        throw new ServoError('conflict', 'stays', 'this server leads until it is stopped', { hint: 'Stop it first.' })
      handOver()
      return { ok: true as const }
    },
  }),
]
