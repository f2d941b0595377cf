import { z } from 'zod'
import { alertKinds } from '../../contract/alert.ts'
import { alertSubject } from '../../domain/alerts/alert-subject.ts'
import { alertStatuses, alerts } from '../../domain/alerts/alerts.table.ts'
import { rowSchema } from '../answers/row-schema.ts'
import { named, nextCursor, type Told } from '../answers/told.ts'
import { listQuery, whenQuery } from '../request/list-query.ts'

export const alertQuery = listQuery.extend({
  ...whenQuery('raised'),
  status: z.enum(alertStatuses).optional(),
  kind: z.enum([...alertKinds, 'test']).optional(),
  target: z.string().min(1).max(255).optional().describe('The name of the alert in the config.'),
})
export type AlertQuery = z.infer<typeof alertQuery>

export const raisedAlert = named('Alert', rowSchema(alerts, { subject: alertSubject }))
export type RaisedAlert = Told<typeof raisedAlert>

export const alertPage = named('AlertPage', z.object({ alerts: z.array(raisedAlert), ...nextCursor }))
export type AlertPage = Told<typeof alertPage>

/** The alerts of the config, without their addresses. */
export const alertTargets = named(
  'AlertTargets',
  z.object({
    targets: z.array(
      z.object({
        name: z.string(),
        on: z.array(z.enum(alertKinds)),
        format: z.enum(['standard', 'slack']),
        select: z.array(z.string()).nullable(),
        labels: z.record(z.string(), z.string()),
        problem: z.string().nullable().describe('What is missing before anything can be sent there; null if nothing is.'),
      }),
    ),
  }),
)
export type AlertTargets = Told<typeof alertTargets>

export const alertTestBody = z.object({ target: z.string().min(1).max(255).optional() })
export type AlertTestBody = z.infer<typeof alertTestBody>

export const testedAlerts = named(
  'TestedAlerts',
  z.object({ alerts: z.array(z.object({ alert_id: z.string(), target: z.string() })) }),
)
export type TestedAlerts = Told<typeof testedAlerts>

/** Questions about alerts, and a way to try them. */
export interface AlertsApi {
  /** The newest first. */
  list(query: AlertQuery): Promise<AlertPage>
  get(alertId: string): Promise<RaisedAlert>
  targets(): Promise<AlertTargets>
  /** Sends a test to one target, or to each. Answers once that is on record; what became of it is asked of `get`. */
  test(body: AlertTestBody, user: string): Promise<TestedAlerts>
}
