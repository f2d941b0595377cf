import type {
  AlertPage,
  AlertQuery,
  AlertsApi,
  AlertTargets,
  AlertTestBody,
  RaisedAlert,
  TestedAlerts,
} from '../../api/alerts/alert-contract.ts'
import { wireRow } from '../../api/wire-row.ts'
import type { AlertDefinition } from '../../contract/alert.ts'
import { AlertRaised } from '../../domain/alerts/alert-raised.event.ts'
import { alertIdOf } from '../../domain/alerts/alert-subject.ts'
import { alerts } from '../../domain/alerts/alerts.table.ts'
import { ServoError } from '../../lib/error.ts'
import { nearest } from '../../lib/nearest.ts'
import { quoteText } from '../../lib/sql/sql-text.ts'
import { newEvent } from '../../model/event.ts'
import { type Knowledge, lookup } from './knowledge.ts'
import { newestPage } from './newest-page.ts'

export interface AlertsOptions {
  /** The alerts of the project, as it was last loaded, and what each lacks. */
  readonly alertTargets?:
    | (() => readonly { readonly definition: AlertDefinition; readonly problem: string | undefined }[])
    | undefined
}

/** Answers questions about alerts. */
export class Alerts implements AlertsApi {
  readonly #known: Knowledge
  readonly #options: AlertsOptions

  constructor(known: Knowledge, options: AlertsOptions) {
    this.#known = known
    this.#options = options
  }

  async list({ status, kind, target, ...query }: AlertQuery): Promise<AlertPage> {
    const asked = Object.entries({ status, kind, target }).filter((pair): pair is [string, string] => pair[1] !== undefined)
    const { rows, next_cursor } = await newestPage(
      this.#known,
      {
        table: alerts,
        at: 'raised_at',
        id: 'alert_id',
        placeOf: (row) => ({ at: row.raised_at, id: row.alert_id }),
        keyOf: (id) => [id],
        owns: () => true,
        has: (row) =>
          (status === undefined || row.status === status) &&
          (kind === undefined || row.kind === kind) &&
          (target === undefined || row.target === target),
        where: ['true', ...asked.map(([column, value]) => `${column} = ${quoteText(value)}`)],
      },
      query,
    )
    return { alerts: rows.map((row) => wireRow(alerts, row)), next_cursor }
  }

  async get(alertId: string): Promise<RaisedAlert> {
    const row = await lookup(this.#known, alerts, alertId)
    if (row !== undefined) return wireRow(alerts, row)
    throw new ServoError('not_found', 'no_such_alert', `alert ${JSON.stringify(alertId.slice(0, 100))} not found`, {
      hint: 'servo alerts list',
    })
  }

  async targets(): Promise<AlertTargets> {
    return {
      targets: this.#targets().map(({ definition: { name, on, format, select, labels }, problem }) => ({
        ...{ name, on, format, select: select ?? null, labels },
        problem: problem ?? null,
      })),
    }
  }

  async test({ target }: AlertTestBody, user: string): Promise<TestedAlerts> {
    if (this.#options.alertTargets === undefined)
      throw new ServoError('unavailable', 'no_server', 'no server runs that would send alerts', {
        hint: 'Start one with servo start or servo dev.',
      })
    const names = this.#targets().map(({ definition }) => definition.name)
    if (target !== undefined && !names.includes(target)) throw noSuchTarget(target, names)
    if (names.length === 0)
      throw new ServoError('invalid', 'no_alerts', 'the config declares no alerts', {
        hint: "Add alerts: [{ on: ['run.failed'], to: { env: 'SLACK_WEBHOOK_URL' }, format: 'slack' }] to servo.config.ts.",
      })
    const subject = { type: 'test', request_id: this.#known.mintId() } as const
    const asked = target === undefined ? names : [target]
    const title = `${user} is testing whether alerts arrive`.slice(0, 1_024)
    await this.#known.submit(
      asked.map((name) => newEvent(AlertRaised, { target: name, kind: 'test', subject, title, facts: {} }, { actor: user })),
    )
    return { alerts: asked.map((name) => ({ alert_id: alertIdOf(name, 'test', subject), target: name })) }
  }

  #targets() {
    const { alertTargets } = this.#options
    if (alertTargets !== undefined) return alertTargets()
    return (this.#known.project?.alerts ?? []).map((definition) => ({ definition, problem: undefined }))
  }
}

function noSuchTarget(asked: string, names: readonly string[]): ServoError {
  const meant = nearest(asked, names)
  return new ServoError(
    'not_found',
    'no_such_alert_target',
    `alert ${JSON.stringify(asked.slice(0, 100))} is not in the config`,
    {
      hint: meant === undefined ? `Alerts of the config: ${names.join(', ') || 'none'}.` : `Did you mean ${meant}?`,
    },
  )
}
