import { BASE, type Route, route } from '../routing/route.ts'
import {
  type AlertsApi,
  alertPage,
  alertQuery,
  alertTargets,
  alertTestBody,
  raisedAlert,
  testedAlerts,
} from './alert-contract.ts'

/** Routes about alerts: those that were raised, to whom they go, and whether they arrive. */
export const alertRoutes = (service: AlertsApi): Route[] => [
  route({
    method: 'GET',
    path: `${BASE}/alerts`,
    operation: 'listAlerts',
    summary: 'Lists alerts that were raised, the newest first.',
    answer: alertPage,
    needs: 'viewer',
    query: alertQuery,
    handle: ({ query }) => service.list(query),
  }),
  route({
    method: 'GET',
    path: `${BASE}/alerts/targets`,
    operation: 'listAlertTargets',
    summary: 'Lists the alerts of the config, and what each lacks.',
    needs: 'viewer',
    answer: alertTargets,
    handle: () => service.targets(),
  }),
  route({
    method: 'POST',
    path: `${BASE}/alerts/test`,
    operation: 'testAlerts',
    summary: 'Sends a test to one alert of the config, or to each.',
    answer: testedAlerts,
    problems: [404],
    needs: 'operator',
    body: alertTestBody,
    statuses: [202],
    handle: ({ body, by }) => service.test(body, by.name),
  }),
  route({
    method: 'GET',
    path: `${BASE}/alerts/:alert_id`,
    operation: 'getAlert',
    summary: 'Shows an alert, and whether it arrived.',
    answer: raisedAlert,
    problems: [404],
    needs: 'viewer',
    handle: ({ params }) => service.get(params.alert_id),
  }),
]
