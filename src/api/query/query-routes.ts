import { BASE, type Route, route } from '../routing/route.ts'
import { type QueryApi, queryAnswer, queryBody } from './query-contract.ts'

/** The route for SQL. It records nothing, so that whoever may look may ask. */
export const queryRoutes = (service: QueryApi): Route[] => [
  route({
    method: 'POST',
    path: `${BASE}/query`,
    operation: 'query',
    example: { sql: 'SELECT state, count(*) FROM runs GROUP BY state' },
    summary: 'Answers read-only SQL over the tables of the state and the assets of the project.',
    needs: 'viewer',
    body: queryBody,
    answer: queryAnswer,
    problems: [422],
    readsFrom: 'tables',
    handle: ({ body }) => service.ask(body),
  }),
]
