import { setTimeout as sleep } from 'node:timers/promises'
import type { AlertQuery } from '../../../api/alerts/alert-contract.ts'
import { ask, tell } from '../../ask-and-tell.ts'
import { alignRows } from '../../columns.ts'
import { wholeNumber } from '../../flags.ts'
import { colours, print, printable, printJson } from '../../output.ts'
import { currentUser, type ProjectFlags } from '../../project.ts'

export interface AlertListFlags extends ProjectFlags {
  status?: AlertQuery['status']
  kind?: AlertQuery['kind']
  target?: string
  limit?: string
}

/** Lists alerts that were raised, the newest first. */
export async function listAlerts(flags: AlertListFlags): Promise<void> {
  const { status, kind, target } = flags
  const limit = flags.limit === undefined ? 50 : wholeNumber('--limit', flags.limit, { min: 1, max: 1_000 })
  const { alerts } = await ask(flags, (api) => api.alerts.list({ limit, status, kind, target }))
  if (flags.json) {
    printJson(alerts)
    return
  }
  if (alerts.length === 0) print('no alerts')
  for (const line of alignRows(
    alerts.map((alert) => [
      { text: alert.raised_at ?? '' },
      { text: shownStatus(alert.status ?? '') },
      { text: alert.kind ?? '' },
      { text: printable(alert.target ?? '') },
      { text: printable(`${alert.title ?? ''}${alert.error === null ? '' : ` (${alert.error})`}`) },
    ]),
  ))
    print(line)
}

export type AlertTargetFlags = ProjectFlags

/** Lists the alerts of the config. */
export async function listAlertTargets(flags: AlertTargetFlags): Promise<void> {
  const { targets } = await ask(flags, (api) => api.alerts.targets())
  if (flags.json) {
    printJson(targets)
    return
  }
  if (targets.length === 0) print('the config declares no alerts')
  for (const line of alignRows(
    targets.map(({ name, on, format, problem }) => [
      { text: printable(name) },
      { text: format },
      { text: on.join(', ') },
      { text: printable(problem ?? '') },
    ]),
  ))
    print(line)
}

/** A receiver has 20 seconds to answer. */
const LOOKS = 500
const LOOK_EVERY_MS = 50

/** Sends a test and says whether it arrived. */
export async function testAlerts(target: string | undefined, flags: ProjectFlags): Promise<void> {
  const shown = await tell(flags, async (api) => {
    const { alerts } = await api.alerts.test(target === undefined ? {} : { target }, currentUser())
    for (let looks = 1; ; looks++) {
      const now = await Promise.all(alerts.map(({ alert_id }) => api.alerts.get(alert_id)))
      if (now.every(({ tries }) => (tries ?? 0) > 0) || looks === LOOKS) return now
      await sleep(LOOK_EVERY_MS)
    }
  })
  if (shown.some(({ status }) => status !== 'delivered')) process.exitCode = 1
  if (flags.json) {
    printJson(shown)
    return
  }
  for (const { target: name, status, error, http_status } of shown) {
    const result = status === 'delivered' ? `it answered ${http_status}` : (error ?? 'it has not answered yet')
    print(`${shownStatus(status ?? '')}  ${printable(`${name}: ${result}`)}`)
  }
}

function shownStatus(status: string): string {
  if (status === 'delivered') return colours.green(status)
  return status === 'failed' ? colours.red(status) : colours.yellow(status)
}
