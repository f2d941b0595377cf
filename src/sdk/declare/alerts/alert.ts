import {
  type AlertDefinitionInput,
  type AlertKind,
  alertKinds,
  kindsWithAssets,
  kindsWithLabels,
} from '../../../contract/alert.ts'
import { withoutUndefined } from '../../../lib/without-undefined.ts'
import { checkedName, invalid, show } from '../../invalid.ts'
import { optionHint } from '../../option-names.ts'

/** Who is told when something goes wrong, or a backfill has ended. */
export interface Alert {
  /** What to tell of. */
  on: readonly AlertKind[]
  /** Where to send it: a URL, or the environment variable of the server that has it. URLs of Slack are secrets: name a variable. */
  to: string | { readonly env: string }
  /** Its name in `servo alerts` and on record. Default: the host of `to`, or the variable. */
  name?: string
  /** `'standard'`, signed by Standard Webhooks, or `'slack'`, which Slack, Mattermost and Discord (`…/slack`) understand. Default: `'standard'`. */
  format?: 'standard' | 'slack'
  /** The environment variable of the server that has the secret for Standard Webhooks. To rotate it, name two: both sign. */
  secret?: string | readonly string[]
  /** Only about these assets: keys or selections. For runs, checks, backfills and stale assets. */
  select?: string | readonly string[]
  /** Only about runs with these labels. For runs and checks. */
  labels?: Readonly<Record<string, string>>
  /** Allow addresses of this machine and of private networks, and `http:`. Default: false. */
  allowPrivate?: boolean
}

const options = ['on', 'to', 'name', 'format', 'secret', 'select', 'labels', 'allowPrivate']
const EXAMPLE = "Write { on: ['run.failed'], to: { env: 'SLACK_WEBHOOK_URL' }, format: 'slack' }."
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]{0,254}$/

export function checkAlerts(alerts: readonly Alert[]): void {
  if (!Array.isArray(alerts))
    throw invalid('bad_alert', `\`alerts\` of the config cannot be ${show(alerts)}`, `Write a list. ${EXAMPLE}`)
  const names = new Set<string>()
  for (const alert of alerts) {
    checkAlert(alert)
    const name = nameOf(alert)
    if (names.has(name)) throw invalid('bad_alert', `two alerts are named ${name}`, 'Give each a `name` of its own.')
    names.add(name)
  }
}

function checkAlert(alert: Alert): void {
  if (typeof alert !== 'object' || alert === null) throw invalid('bad_alert', `an alert cannot be ${show(alert)}`, EXAMPLE)
  const unknown = Object.keys(alert).find((name) => !options.includes(name))
  if (unknown !== undefined) throw invalid('bad_alert', `an alert: unknown option \`${unknown}\``, optionHint(unknown, options))
  const { on, to, name, format = 'standard', labels, allowPrivate } = alert
  if (!Array.isArray(on) || on.length === 0) throw invalid('bad_alert', `\`on\` of an alert cannot be ${show(on)}`, EXAMPLE)
  const stranger = on.find((kind) => !alertKinds.includes(kind))
  if (stranger !== undefined)
    throw invalid('bad_alert', `\`on\` of an alert: unknown kind ${show(stranger)}`, `Choose from ${alertKinds.join(', ')}.`)
  checkTo(to, allowPrivate === true)
  if (name !== undefined) checkedName(name, 'alert')
  const owner = `alert ${nameOf(alert)}`
  if (format !== 'standard' && format !== 'slack')
    throw invalid('bad_alert', `\`format\` of ${owner} cannot be ${show(format)}`, "Write 'standard' or 'slack'.")
  const secrets = secretsOf(alert)
  const hint = "Name the environment variable that has it: secret: 'ALERT_SECRET'. Do not write the secret itself."
  // What is there may be the secret itself, so it is not shown.
  if (secrets.some((each) => typeof each !== 'string' || !VARIABLE.test(each)) || secrets.length > 10)
    throw invalid('bad_secret', `\`secret\` of ${owner} must be the name of an environment variable`, hint)
  if (format === 'standard' && secrets.length === 0)
    throw invalid('bad_secret', `${owner} needs a secret to sign what it sends`, `${hint} For Slack: format: 'slack'.`)
  if (format === 'slack' && secrets.length > 0)
    throw invalid(
      'bad_secret',
      `${owner} has a secret, but format: 'slack' is not signed`,
      "Remove `secret`, or write format: 'standard'.",
    )
  if (
    labels !== undefined &&
    (typeof labels !== 'object' || labels === null || Object.values(labels).some((each) => typeof each !== 'string'))
  )
    throw invalid('bad_alert', `\`labels\` of ${owner} cannot be ${show(labels)}`, "Write labels: { team: 'shop' }.")
  if (selectionsOf(alert)?.some((each) => typeof each !== 'string' || each === ''))
    throw invalid('bad_alert', `\`select\` of ${owner} cannot be ${show(alert.select)}`, "Write select: 'mart/*'.")
  checkLimits(owner, alert)
}

/** What limits an alert and cannot be asked of a kind is refused, because it would do nothing. */
function checkLimits(owner: string, alert: Alert): void {
  const limits = [
    ['select', selectionsOf(alert) !== undefined, kindsWithAssets],
    ['labels', Object.keys(alert.labels ?? {}).length > 0, kindsWithLabels],
  ] as const
  for (const [option, isSet, kinds] of limits) {
    const other = isSet ? alert.on.find((kind) => !kinds.includes(kind)) : undefined
    if (other !== undefined)
      throw invalid(
        'bad_alert',
        `\`${option}\` of ${owner} cannot limit ${other}`,
        `Declare another alert for ${other}, without \`${option}\`.`,
      )
  }
}

function checkTo(to: Alert['to'], allowPrivate: boolean): void {
  const hint = "Write to: 'https://alerts.example.com/servo', or name a variable that has the URL: to: { env: 'ALERT_URL' }."
  if (typeof to === 'object' && to !== null) {
    if (typeof to.env !== 'string' || !VARIABLE.test(to.env) || Object.keys(to).length !== 1)
      throw invalid('bad_alert', '`to` of an alert must name an environment variable', hint)
    return
  }
  // The rest of an address may be a secret, so it is not shown.
  if (typeof to !== 'string' || !URL.canParse(to)) throw invalid('bad_alert', '`to` of an alert is not a URL', hint)
  const { protocol, username } = new URL(to)
  if (protocol === 'slack:')
    throw invalid(
      'bad_alert',
      '`to` of an alert begins with slack:, which has no address',
      "Make an incoming webhook in Slack, and write to: { env: 'SLACK_WEBHOOK_URL' }, format: 'slack'.",
    )
  if (protocol !== 'https:' && !(protocol === 'http:' && allowPrivate))
    throw invalid(
      'bad_alert',
      `\`to\` of an alert begins with ${protocol}, not https:`,
      'Use https:. For a machine of your own network: allowPrivate: true.',
    )
  if (username !== '')
    throw invalid('bad_alert', '`to` of an alert has a user name in it', 'Take it out: alerts are signed instead.')
}

const secretsOf = ({ secret }: Alert): readonly string[] => (secret === undefined ? [] : [secret].flat())
const selectionsOf = ({ select }: Alert): readonly string[] | undefined => (select === undefined ? undefined : [select].flat())
const nameOf = ({ name, to }: Alert): string => name ?? (typeof to === 'string' ? new URL(to).hostname : to.env)

export const describeAlert = (alert: Alert): AlertDefinitionInput =>
  withoutUndefined({
    name: nameOf(alert),
    on: [...new Set(alert.on)],
    to: typeof alert.to === 'string' ? { url: alert.to } : { env: alert.to.env },
    format: alert.format,
    secrets: [...secretsOf(alert)],
    select: selectionsOf(alert) && [...(selectionsOf(alert) ?? [])],
    labels: { ...alert.labels },
    allow_private: alert.allowPrivate,
  })

/** Variables whose values must appear nowhere: secrets, and addresses that are secrets. */
export const secretsOfAlert = ({ to, secrets = [] }: AlertDefinitionInput): string[] => [
  ...(to.env ? [to.env] : []),
  ...secrets,
]
