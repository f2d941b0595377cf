import { z } from 'zod'
import { alertKinds } from '../../contract/alert.ts'
import { alertStatuses, type alerts } from '../../domain/alerts/alerts.table.ts'
import { timestamp } from '../../model/envelope.ts'
import type { WireRow } from '../wire-row.ts'

export const alertQuery = z.object({
  limit: z.coerce.number().int().min(1).max(1_000).default(50),
  cursor: z.string().max(2_048).optional(),
  since: timestamp.optional(),
  until: timestamp.optional(),
  status: z.enum(alertStatuses).optional(),
  kind: z.enum([...alertKinds, 'test']).optional(),
  /** The name of the alert in the config. */
  target: z.string().min(1).max(255).optional(),
})
export type AlertQuery = z.infer<typeof alertQuery>

export interface AlertPage {
  readonly alerts: readonly WireRow<typeof alerts>[]
  readonly next_cursor: string | null
}

/** An alert of the config, without its address. */
export interface AlertTarget {
  readonly name: string
  readonly on: readonly string[]
  readonly format: string
  readonly select: readonly string[] | null
  readonly labels: Readonly<Record<string, string>>
  /** What is missing before anything can be sent there; null if nothing is. */
  readonly problem: string | null
}

export const alertTestBody = z.object({ target: z.string().min(1).max(255).optional() })
export type AlertTestBody = z.infer<typeof alertTestBody>

export interface TestedAlerts {
  readonly alerts: readonly { readonly alert_id: string; readonly target: string }[]
}

/** Questions about alerts, and a way to try them. */
export interface AlertsApi {
  /** The newest first. */
  list(query: AlertQuery): Promise<AlertPage>
  get(alertId: string): Promise<WireRow<typeof alerts>>
  targets(): Promise<{ readonly targets: readonly AlertTarget[] }>
  /** Sends a test to one target, or to each. Answers once that is on record; what became of it is asked of `get`. */
  test(body: AlertTestBody, user: string): Promise<TestedAlerts>
}
