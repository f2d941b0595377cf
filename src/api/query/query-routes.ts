import { BASE, type Route, route } from '../routing/route.ts'
import { type QueryApi, queryBody } from './query-contract.ts'

/** The route for SQL. It records nothing, so that whoever may look may ask. */
export const queryRoutes = (service: QueryApi): Route[] => [
  route({
    method: 'POST',
    path: `${BASE}/query`,
    needs: 'viewer',
    body: queryBody,
    readsFrom: 'tables',
    handle: ({ body }) => service.ask(body),
  }),
]
