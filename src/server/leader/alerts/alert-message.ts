import { signStandard } from '../../../api/hooks/standard-webhooks.ts'
import type { AlertDefinition } from '../../../contract/alert.ts'
import type { PendingAlertRow } from '../../../domain/alerts/pending-alerts.table.ts'
import { SECOND_MS, toIso } from '../../../lib/time.ts'

type Environment = Readonly<Record<string, string | undefined>>

export interface AlertMessage {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** What is missing before anything can be sent there; undefined if nothing is. */
export function missingFor({ to, secrets, format }: AlertDefinition, env: Environment): string | undefined {
  if (to.env != null && !env[to.env]) return `${to.env} is not set`
  if (format === 'standard' && !secrets.some((name) => env[name])) return `${secrets.join(' and ')} is not set`
  return undefined
}

/** An alert as its target gets it, or what is missing for that. */
export function messageFor(
  alert: Readonly<PendingAlertRow>,
  definition: AlertDefinition,
  { env, now, project }: { readonly env: Environment; readonly now: number; readonly project: string },
): AlertMessage | { readonly missing: string } {
  const missing = missingFor(definition, env)
  if (missing !== undefined) return { missing }
  const { alert_id: id, kind: type, title, facts, raised_at } = alert
  const { to, format, secrets } = definition
  const url = to.url ?? env[to.env ?? ''] ?? ''
  const json = { 'content-type': 'application/json', 'user-agent': 'servo' }
  if (format === 'slack') {
    const lines = Object.entries(facts).map(([name, value]) => `• ${name}: ${Array.isArray(value) ? value.join(', ') : value}`)
    const text = escaped([`*${type}* (${project})`, title, ...lines].join('\n')).slice(0, MAX_SLACK_TEXT)
    return { url, headers: json, body: JSON.stringify({ text }) }
  }
  const body = JSON.stringify({ type, timestamp: toIso(raised_at), data: { alert_id: id, project, title, ...facts } })
  const timestamp = Math.floor(now / SECOND_MS)
  const signature = signStandard(
    { id, timestamp, body },
    secrets.flatMap((name) => env[name] || []),
  )
  if (signature === undefined)
    return { missing: `${secrets.join(' and ')} is not a key: Standard Webhooks has whsec_ and base64` }
  const signed = { 'webhook-id': id, 'webhook-timestamp': String(timestamp), 'webhook-signature': signature }
  return { url, headers: { ...json, ...signed }, body }
}

/** Slack cuts what is longer. */
const MAX_SLACK_TEXT = 3_000

/** What comes from code must not ping a channel or pass for a link. */
const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
