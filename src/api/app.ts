import { Hono } from 'hono'
import { ServoError } from '../lib/error.ts'
import { isSameToken } from '../lib/hash.ts'
import type { AssetsApi } from './asset-contract.ts'
import { assetRoutes } from './asset-routes.ts'
import type { BackfillsApi } from './automation/backfill-contract.ts'
import { backfillRoutes } from './automation/backfill-routes.ts'
import type { SchedulesApi } from './automation/schedule-contract.ts'
import { scheduleRoutes } from './automation/schedule-routes.ts'
import type { SensorsApi } from './automation/sensor-contract.ts'
import { sensorRoutes } from './automation/sensor-routes.ts'
import type { WhyApi } from './automation/why-contract.ts'
import { whyRoutes } from './automation/why-routes.ts'
import { problemResponse } from './problem.ts'
import { refuseUnknownParameters } from './request/parameters.ts'
import type { RetentionApi } from './retention-contract.ts'
import { retentionRoutes } from './retention-routes.ts'
import type { RunsApi } from './run-contract.ts'
import { runRoutes } from './run-routes.ts'
import type { StatusApi } from './status-contract.ts'
import { statusRoutes } from './status-routes.ts'
import { refuseStrangers } from './strangers.ts'
import { leaveUnread } from './unread-body.ts'

export interface AppOptions {
  readonly runs: RunsApi
  readonly statuses: StatusApi
  readonly assets: AssetsApi
  readonly schedules: SchedulesApi
  readonly sensors: SensorsApi
  readonly backfills: BackfillsApi
  readonly whys: WhyApi
  readonly retention: RetentionApi
  /** A caller that has this token may do everything. */
  readonly token: string
  /** Names that this server goes by. */
  readonly hosts: readonly string[]
  /** Differs with every start of the server. */
  readonly instance: string
  /** Lets another process lead. Absent for a server, which leads until it is stopped. */
  readonly handOver?: () => void
  /** Routes for workers, which authenticate with tokens of their own. */
  readonly workers?: Hono
  /** Routes for senders of messages to sensors, which are known by their signatures. */
  readonly hooks?: Hono
}

/** The whole API of a server on one machine: refuses strangers first, then routes. */
export function localApp(options: AppOptions): Hono {
  const { runs, assets, statuses, schedules, sensors, backfills, whys, token, hosts, instance, handOver, workers, hooks } =
    options
  const app = new Hono()
  app.onError((error) => problemResponse(error))
  app.notFound((c) =>
    problemResponse(new ServoError('not_found', 'no_such_route', `route ${c.req.method} ${c.req.path} not found`)),
  )
  app.use(leaveUnread)
  // Ahead of the check of names: senders reach this server through a proxy or a tunnel, by a name that it does not know.
  if (hooks !== undefined) app.route('/', hooks)
  app.use(async (c, next) => {
    refuseStrangers(c.req.raw.headers, hosts)
    await next()
  })
  app.get('/health/live', (c) => c.json({ ok: true, instance }))
  app.use('/api/*', refuseUnknownParameters)
  if (workers !== undefined) app.route('/', workers)
  app.use('/api/*', async (c, next) => {
    if (!isToken(c.req.header('authorization'), token)) {
      throw new ServoError('invalid', 'unauthenticated', 'this needs the token of the server', {
        hint: 'Send it as Authorization: Bearer …; the servo command does.',
      })
    }
    await next()
  })
  app.post('/api/v1/orchestration/leader/hand-over', (c) => {
    if (handOver === undefined) {
      throw new ServoError('conflict', 'stays', 'this server leads until it is stopped', { hint: 'Stop it first.' })
    }
    handOver()
    return c.json({ ok: true }, 202)
  })
  app.route('/', runRoutes(runs, userOf))
  app.route('/', statusRoutes(statuses))
  app.route('/', assetRoutes(assets, userOf))
  app.route('/', scheduleRoutes(schedules, userOf))
  app.route('/', sensorRoutes(sensors, userOf))
  app.route('/', backfillRoutes(backfills, userOf))
  app.route('/', whyRoutes(whys))
  app.route('/', retentionRoutes(options.retention, userOf))
  return app
}

/** The user to put on record. On one machine a caller that has the token is believed. */
const userOf = (request: Request): string => request.headers.get('x-servo-user')?.slice(0, 200) || 'local'

function isToken(header: string | undefined, token: string): boolean {
  return isSameToken(header?.startsWith('Bearer ') ? header.slice('Bearer '.length) : '', token)
}
