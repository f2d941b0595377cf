import { Hono } from 'hono'
import { whyKinds } from '../../domain/why/reasons.ts'
import { ServoError } from '../../lib/error.ts'
import { nearest } from '../../lib/nearest.ts'
import { problemResponse } from '../problem.ts'
import { takes } from '../request/parameters.ts'
import { conflictQuery, reasonQuery, type WhyApi } from './why-contract.ts'

/** Reasons and conflicts. A name is one part of the path, with its slashes percent-encoded. */
export function whyRoutes(service: WhyApi): Hono {
  const app = new Hono()
  app.onError((error) => problemResponse(error))
  const base = '/api/v1/orchestration'

  app.get(`${base}/why/:kind/:name`, takes(reasonQuery), async (c) => {
    const asked = c.req.param('kind')
    const kind = whyKinds.find((each) => each === asked)
    if (kind === undefined) throw unknownKind(asked)
    return c.json(await service.why(kind, c.req.param('name'), c.var.query))
  })

  app.get(`${base}/conflicts`, takes(conflictQuery), async (c) => c.json(await service.conflicts(c.var.query)))

  return app
}

function unknownKind(asked: string): ServoError {
  const meant = nearest(asked, whyKinds)
  return new ServoError('not_found', 'no_such_kind', `unknown kind ${JSON.stringify(asked.slice(0, 60))}`, {
    hint: meant === undefined ? `Ask about one of ${whyKinds.join(', ')}.` : `Did you mean ${meant}?`,
  })
}
