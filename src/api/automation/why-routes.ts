import { whyKinds } from '../../domain/why/reasons.ts'
import { ServoError } from '../../lib/error.ts'
import { nearest } from '../../lib/nearest.ts'
import { BASE, type Route, route } from '../routing/route.ts'
import { conflictPage, conflictQuery, reasonQuery, type WhyApi, whyAnswer } from './why-contract.ts'

/** Reasons and conflicts. A name is one part of the path, with its slashes percent-encoded. */
export const whyRoutes = (service: WhyApi): Route[] => [
  route({
    method: 'GET',
    path: `${BASE}/why/:kind/:name`,
    operation: 'explain',
    summary: 'Says why a schedule, sensor, backfill, run or asset ran or did not.',
    needs: 'viewer',
    answer: whyAnswer,
    problems: [404, 409],
    query: reasonQuery,
    handle: ({ params, query }) => {
      const kind = whyKinds.find((each) => each === params.kind)
      if (kind === undefined) throw unknownKind(params.kind)
      return service.why(kind, params.name, query)
    },
  }),
  route({
    method: 'GET',
    path: `${BASE}/conflicts`,
    operation: 'listConflicts',
    summary: 'Lists different requests under one run key or message id, the newest first.',
    needs: 'viewer',
    answer: conflictPage,
    query: conflictQuery,
    handle: ({ query }) => service.conflicts(query),
  }),
]

function unknownKind(asked: string): ServoError {
  const meant = nearest(asked, whyKinds)
  return new ServoError('not_found', 'no_such_kind', `unknown kind ${JSON.stringify(asked.slice(0, 60))}`, {
    hint: meant === undefined ? `Ask about one of ${whyKinds.join(', ')}.` : `Did you mean ${meant}?`,
  })
}
