import type { SensorDetail } from '../../../api/automation/sensor-contract.ts'
import { secretNotSet } from '../../../domain/why/words-automation.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../lib/time.ts'
import { alignRows, type Cell } from '../../columns.ts'
import { colours, print, printable } from '../../output.ts'
import { localTime, shortId } from '../../show-run.ts'

export const statusCell = (status: SensorDetail['status']): Cell => ({
  text: status,
  paint: { active: colours.green, error: colours.red, paused: colours.yellow, disabled: colours.dim, removed: colours.dim }[
    status
  ],
})

/** Everything known of a sensor, its last error in full. */
export function showDetail(detail: SensorDetail): void {
  const { definition, state, status } = detail
  print(`${colours.bold(printable(definition.sensor_name))}  ${statusCell(status).paint?.(status) ?? status}`)
  if (definition.description) for (const line of definition.description.split('\n')) print(`  ${printable(line)}`)
  const rows = aboutSensor(detail).map(([title, value]): Cell[] => [
    { text: title, paint: colours.dim },
    { text: printable(value), ...(title === 'wrong' && { paint: colours.red }) },
  ])
  for (const line of alignRows(rows)) print(`  ${line}`)
  if (state?.last_error != null) {
    print(`  ${colours.red('last error')}${at(state.last_error_at)}`)
    for (const line of state.last_error.split('\n')) print(`    ${printable(line)}`)
  }
}

type About = readonly [string, string | null | undefined | false]

/** What is known of a sensor, each with its title. */
export function aboutSensor(detail: SensorDetail): [string, string][] {
  const { definition, state, status, status_reason, next_poll_at, unrecorded_polls, address, senders, last_eval } = detail
  const { config } = definition
  const place = `${definition.file}${definition.line === null ? '' : `:${definition.line}`}`
  const missing = senders?.missing_secrets ?? []
  const empty = (state?.empty_polls ?? 0) + (unrecorded_polls?.count ?? 0)
  const evaluated = unrecorded_polls?.last ?? state?.last_evaluation_at
  const outcome = unrecorded_polls === null ? last_eval?.status : 'no_new_data'
  const refused = Object.entries(senders?.refused ?? {})
  const about: About[] = [
    ['id', definition.sensor_id],
    ['why', status_reason && `${status_reason}${status === 'paused' ? at(state?.status_changed_at) : ''}`],
    ['wrong', missing.length > 0 && secretNotSet(missing)],
    ['type', definition.sensor_type],
    ['address', senders?.url ?? address],
    ...ofSource(config),
    ['audience', config.type === 'pubsub' && (senders?.audience ?? config.audience ?? 'its address below SERVO_PUBLIC_URL')],
    [
      'refused',
      refused.length > 0 && `${refused.map(([why, count]) => `${count} ${why}`).join(', ')}, since the server started`,
    ],
    ['may run', definition.asset_selection.join(' ')],
    ['tries', definition.sensor_type !== 'poll' && `${definition.max_tries}, then a message is a dead letter`],
    ['timeout', definition.has_code && durationInWords(definition.timeout_ms)],
    ['declared', definition.file === null ? definition.origin === 'api' && 'over the API' : place],
    ['next poll', next_poll_at && localTime(next_poll_at)],
    ['cursor', state?.cursor],
    [
      'set by',
      state?.cursor_reset_by &&
        `${state.cursor_reset_by}${at(state.cursor_reset_at)}${state.cursor_reset_reason ? `: ${state.cursor_reset_reason}` : ''}`,
    ],
    ['version', state && String(state.state_version)],
    ['evaluated', evaluated && `${localTime(evaluated)} ${outcome ?? ''}`],
    ['runs', last_eval?.run_ids.map(shortId).join(' ')],
    [
      'polls',
      empty > 0 &&
        `${empty} found nothing${at(state?.empty_since ?? unrecorded_polls?.first)}; those are recorded every two minutes`,
    ],
    [
      'rests until',
      state?.backoff_until && config.type !== 'webhook' && config.type !== 'pubsub' && localTime(state.backoff_until),
    ],
    ['dead letters', state !== null && state.dead_letters > 0 && String(state.dead_letters)],
  ]
  return about.flatMap(([title, value]): [string, string][] => (value ? [[title, value]] : []))
}

const at = (moment: string | null | undefined): string => (moment == null ? '' : ` (${localTime(moment)})`)

/** What it is told of. */
function ofSource(config: SensorDetail['definition']['config']): About[] {
  const fixed = 'fixed' in config ? config.fixed : undefined
  const inMessage: About[] = [
    ['partition at', fixed?.partition],
    ['key at', fixed?.key],
  ]
  switch (config.type) {
    case 'webhook':
      return [['verify', config.verify], ['secret', config.secrets.join(', ')], ...inMessage]
    case 'pubsub':
      return [['topic', config.topic], ['account', config.service_account], ...inMessage]
    case 'poll':
      return [['every', durationInWords(config.every_ms)]]
    case 'asset':
      return [['watches', config.assets.join(' ')], ['happenings', config.happenings.join(' ')], ...inMessage]
    case 'run':
      return [['watches', config.assets?.join(' ') ?? 'all runs'], ['states', config.states.join(' ')], ...inMessage]
  }
}

/** `30 s`, `90 s`, `5 min`, `2 h`, `3 days`: in the largest unit in which it is a whole number. */
function durationInWords(ms: number): string {
  const [unit, size] = UNITS.find(([, each]) => ms >= each && ms % each === 0) ?? ['ms', 1]
  return `${ms / size} ${unit === 'days' && ms === size ? 'day' : unit}`
}

const UNITS: readonly (readonly [string, number])[] = [
  ['days', DAY_MS],
  ['h', HOUR_MS],
  ['min', MINUTE_MS],
  ['s', SECOND_MS],
]
