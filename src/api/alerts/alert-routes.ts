import { BASE, type Route, route } from '../routing/route.ts'
import { type AlertsApi, alertQuery, alertTestBody } from './alert-contract.ts'

/** Routes about alerts: those that were raised, to whom they go, and whether they arrive. */
export const alertRoutes = (service: AlertsApi): Route[] => [
  route({
    method: 'GET',
    path: `${BASE}/alerts`,
    needs: 'viewer',
    query: alertQuery,
    handle: ({ query }) => service.list(query),
  }),
  route({ method: 'GET', path: `${BASE}/alerts/targets`, needs: 'viewer', handle: () => service.targets() }),
  route({
    method: 'POST',
    path: `${BASE}/alerts/test`,
    needs: 'operator',
    body: alertTestBody,
    statuses: [202],
    handle: ({ body, by }) => service.test(body, by.name),
  }),
  route({
    method: 'GET',
    path: `${BASE}/alerts/:alert_id`,
    needs: 'viewer',
    handle: ({ params }) => service.get(params.alert_id),
  }),
]
