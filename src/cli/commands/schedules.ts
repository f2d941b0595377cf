import type {
  AcceptedSchedule,
  LastRun,
  ScheduleChangesBody,
  ScheduleDetail,
  SchedulesApi,
} from '../../api/automation/schedule-contract.ts'
import { scheduleStatuses } from '../../contract/automation-statuses.ts'
import { overlapPolicies } from '../../contract/overlap-policies.ts'
import { minutesInWords } from '../../domain/schedules/deciding/due.ts'
import { isServoError, ServoError } from '../../lib/error.ts'
import { ask, isNotLoaded, type Leadership, tell } from '../ask-and-tell.ts'
import { alignRows, type Cell } from '../columns.ts'
import { badFlag, choiceOf, labelsFlag, limitFlag, wholeNumber } from '../flags.ts'
import { colours, headsOf, note, print, printable, printJson, printTable } from '../output.ts'
import { currentUser, type ProjectFlags } from '../project.ts'
import { AUTOMATION_OFF, firstLine, localTime, localZone, shortId, stateCell } from '../show-run.ts'

/** Says so if nothing ticks, or if all that needs code of the project waits. */
export async function sayWhatStands(api: SchedulesApi): Promise<void> {
  const { is_on, outage } = await api.automation()
  if (!is_on) note(AUTOMATION_OFF)
  else if (outage !== null) note(outageText(outage))
}

const outageText = (outage: string): string => `sensors and schedule conditions are waiting: ${printable(firstLine(outage))}`

/** Without a server or its automation no schedule ticks, and its next tick does not show that. */
async function sayNothingTicks(found: readonly ScheduleDetail[], api: SchedulesApi, leader: Leadership): Promise<void> {
  if (!found.some(({ status }) => status === 'active')) return
  if (leader === 'none') note('no server is running; schedules tick only while one is (servo dev)')
  else if (leader === 'answers') await sayWhatStands(api)
}

export interface ScheduleListFlags extends ProjectFlags {
  limit?: string
  cursor?: string
  status?: string
}

export async function listSchedules(flags: ScheduleListFlags): Promise<void> {
  const status = flags.status === undefined ? undefined : choiceOf('--status', flags.status, scheduleStatuses)
  const query = { limit: limitFlag(flags.limit), cursor: flags.cursor, status }
  const { isUnknown, ...page } = await ask(flags, async (api, leader) => {
    const found = await api.schedules.list(query)
    await sayNothingTicks(found.schedules, api.schedules, leader)
    return { ...found, isUnknown: found.schedules.length === 0 && (await isNotLoaded(flags, api, leader)) }
  })
  if (flags.json) {
    printJson({ ...page, schedules: page.schedules.map(named) })
    return
  }
  if (isUnknown) print('no schedules on record')
  else if (page.schedules.length === 0)
    print(
      status === undefined
        ? 'no schedules on record; declare one with schedule() in the project, and start servo dev once, which records it'
        : `no schedule is ${status}`,
    )
  else printTable(headsOf(listHeads()), page.schedules.map(listed))
  if (page.next_cursor !== null) print(colours.dim(`more: --cursor ${page.next_cursor}`))
}

/** Times are those of this machine, and crons those of their schedules: heads of columns say which. */
const listHeads = (): string[] => {
  const here = ` (${localZone()})`
  return ['schedule', 'status', `next tick${here}`, `last tick${here}`, `last run${here}`, 'cron', 'selection', 'why']
}

/** The name first: it is what programs look for. */
const named = (detail: ScheduleDetail) => ({ schedule_name: detail.definition.schedule_name, ...detail })

function listed({ definition, state, status, status_reason, next_ticks, last_run }: ScheduleDetail): Cell[] {
  const [next] = next_ticks
  const cron = `${definition.cron_expressions.join(' | ')} ${definition.timezone}`
  return [
    { text: printable(definition.schedule_name) },
    statusCell(status),
    { text: localTime(next ?? null) },
    { text: state?.last_scheduled_for == null ? '' : `${localTime(state.last_scheduled_for)} ${state.last_tick_status ?? ''}` },
    {
      text:
        last_run === null
          ? ''
          : printable(`${localTime(last_run.requested_at)} ${stateCell(last_run.state).text}${askedBy(last_run)}`),
    },
    { text: printable(cron) },
    { text: printable(definition.asset_selection.join(' ')), paint: colours.dim },
    // A reason may be long: it stands last, so that it widens nothing.
    { text: printable(firstLine(status_reason ?? '')), paint: colours.dim },
  ]
}

/** Says so if a user asked for a run, or if it was caught up. */
function askedBy({ cause, requested_by }: LastRun): string {
  const by = requested_by === null ? '' : ` by ${requested_by}`
  return cause === 'manual' ? `, triggered${by}` : cause === 'catch_up' ? `, caught up${by}` : ''
}

const statusCell = (status: ScheduleDetail['status']): Cell => ({
  text: status,
  paint: status === 'active' ? colours.green : status === 'paused' ? colours.yellow : colours.dim,
})

export async function showSchedule(name: string, flags: ProjectFlags): Promise<void> {
  const detail = await ask(flags, async ({ schedules }, leader) => {
    const found = await schedules.get(name)
    await sayNothingTicks([found], schedules, leader)
    return found
  })
  if (flags.json) {
    printJson(named(detail))
    return
  }
  const { definition, state, status, status_reason, next_ticks, catchup_limit, last_run } = detail
  const statusShown = statusCell(status)
  print(`${colours.bold(printable(definition.schedule_name))}  ${statusShown.paint?.(status) ?? status}`)
  if (definition.description) for (const line of definition.description.split('\n')) print(`  ${printable(line)}`)
  const place =
    definition.file === null ? undefined : `${definition.file}${definition.line === null ? '' : `:${definition.line}`}`
  const since = state?.status_changed_at == null ? '' : ` (${localTime(state.status_changed_at)})`
  const about: [string, string | null | undefined | false][] = [
    ['why', status_reason && `${status_reason}${since}`],
    [
      'resume',
      status === 'paused' &&
        (state?.status === 'PAUSED' ? `servo schedules resume ${definition.schedule_name}` : 'servo automation resume'),
    ],
    ['cron', `${definition.cron_expressions.join(' | ')} ${definition.timezone}`],
    ['from', definition.start_at && localTime(definition.start_at)],
    ['until', definition.end_at && localTime(definition.end_at)],
    ['selects', definition.asset_selection.join(' ')],
    ['partitions', definition.partition_selection?.join(' ')],
    ['offset', definition.partition_offset > 0 && String(definition.partition_offset)],
    ['catch-up', `${minutesInWords(definition.catchup_window_minutes)}, at most ${catchup_limit}`],
    ['overlap', definition.overlap],
    ['condition', definition.has_condition && 'in code, evaluated before each tick'],
    [
      'labels',
      Object.entries(definition.labels)
        .map(([key, value]) => `${key}=${value}`)
        .join(' '),
    ],
    ['pauses', definition.pause_after !== null && `after ${definition.pause_after} failed runs in a row`],
    ['declared', place ?? `over the API`],
    ['next ticks', next_ticks.map(localTime).join(', ')],
    ['last tick', state?.last_scheduled_for && `${localTime(state.last_scheduled_for)} ${state.last_tick_status ?? ''}`],
    [
      'last run',
      last_run !== null &&
        `${shortId(last_run.run_id)} ${localTime(last_run.requested_at)} ${stateCell(last_run.state).text}${askedBy(last_run)}`,
    ],
    ['running', state?.open_runs.map(shortId).join(' ')],
    ['time zone', `${localZone()} for the times above`],
  ]
  const rows = about.flatMap(([name, value]): Cell[][] =>
    value ? [[{ text: name, paint: colours.dim }, { text: printable(value) }]] : [],
  )
  for (const line of alignRows(rows)) print(`  ${line}`)
}

interface ChangeFlags extends ProjectFlags {
  reason?: string
  key?: string
}

const requestOf = ({ reason, key }: ChangeFlags) => ({
  ...(reason !== undefined && { reason }),
  ...(key !== undefined && { request_id: key }),
})

export async function switchSchedules(to: 'pause' | 'resume', names: string[], flags: ChangeFlags): Promise<void> {
  const done = await tell(flags, async ({ schedules }) => {
    // Every name is looked up before anything changes: a slip in the second must not leave the first paused.
    for (const name of names) await schedules.get(name)
    const accepted: AcceptedSchedule[] = []
    for (const name of names) accepted.push(await schedules[to](name, requestOf(flags), currentUser()))
    return accepted
  })
  if (flags.json) printJson(done)
  else for (const one of done) sayDone(one)
}

/** What was done, with the name of the schedule unless it begins with that. */
function sayDone({ schedule_name, message }: AcceptedSchedule): void {
  print(printable(message.startsWith(`${schedule_name} `) ? message : `${schedule_name}: ${message}`))
}

export interface DefinitionFlags extends ChangeFlags {
  cron?: string[]
  timezone?: string
  select?: string[]
  partition?: string[]
  offset?: string
  catchupWindowMinutes?: string
  maxCatchup?: string
  overlap?: string
  label?: string[]
  priority?: string
  pauseAfter?: string
  description?: string
  name?: string
  enable?: boolean
}

/** What flags say of a schedule; what they do not name is left as it is. */
function changesOf(flags: DefinitionFlags): ScheduleChangesBody {
  const number = (flag: string, text: string | undefined, min: number, max: number) =>
    text === undefined ? undefined : wholeNumber(flag, text, { min, max })
  const body = {
    name: flags.name,
    description: flags.description,
    cron_expressions: flags.cron,
    timezone: flags.timezone,
    asset_selection: flags.select,
    partition_selection: flags.partition,
    partition_offset: number('--offset', flags.offset, 0, 100_000),
    catchup_window_minutes: number('--catchup-window-minutes', flags.catchupWindowMinutes, 0, 5_256_000),
    max_catchup_ticks: number('--max-catchup', flags.maxCatchup, 0, 10_000),
    overlap: flags.overlap === undefined ? undefined : choiceOf('--overlap', flags.overlap, overlapPolicies),
    labels: flags.label === undefined ? undefined : labelsFlag(flags.label),
    priority: number('--priority', flags.priority, -1_000, 1_000),
    pause_after: number('--pause-after', flags.pauseAfter, 1, 20),
    enabled: flags.enable,
    request_id: flags.key,
  }
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined))
}

export async function createSchedule(name: string, flags: DefinitionFlags): Promise<void> {
  const { cron, select } = flags
  if (cron === undefined || select === undefined)
    throw badFlag(
      `missing option --${cron === undefined ? 'cron' : 'select'}`,
      `Write: servo schedules create ${name} --cron "0 5 * * *" --select mart/revenue`,
    )
  const { newScheduleBody } = await import('../../api/automation/schedule-contract.ts')
  const body = newScheduleBody.parse({ ...changesOf(flags), name })
  await change(flags, (schedules, user) => schedules.create(body, user))
}

export async function updateSchedule(name: string, flags: DefinitionFlags): Promise<void> {
  const changes = changesOf(flags)
  if (Object.keys(changes).every((field) => field === 'request_id'))
    throw new ServoError('invalid', 'no_changes', `no changes given for ${name}`, {
      hint: `Name what to change, such as --cron "30 5 * * *". servo schedules update --help lists the options.`,
    })
  await change(flags, (schedules, user) => schedules.update(name, changes, user))
}

export const deleteSchedule = (name: string, flags: ChangeFlags): Promise<void> =>
  change(flags, (schedules, user) => schedules.remove(name, flags.key === undefined ? {} : { request_id: flags.key }, user))

const FLAGS: Readonly<Record<string, string>> = {
  cron_expressions: '--cron',
  timezone: '--timezone',
  asset_selection: '--select',
  partition_selection: '--partition',
  partition_offset: '--offset',
  labels: '--label',
  description: '--description',
  name: '--name',
}

/** What is wrong with a field is said of the flag that it comes from. */
export async function inFlags<T>(command: () => Promise<T>): Promise<T> {
  try {
    return await command()
  } catch (error) {
    const [, field = '', rest = ''] = isServoError(error) ? (/^([a-z_]+)(?:\.\d+)?(: .*)$/s.exec(error.message) ?? []) : []
    const flag = FLAGS[field]
    if (!isServoError(error) || flag === undefined) throw error
    const { hint, facts } = error
    throw new ServoError(error.kind, error.code, `${flag}${rest}`, { facts, ...(hint !== undefined && { hint }) })
  }
}

async function change(
  flags: ProjectFlags,
  command: (schedules: SchedulesApi, user: string) => Promise<AcceptedSchedule>,
): Promise<void> {
  const accepted = await tell(flags, ({ schedules }) => inFlags(() => command(schedules, currentUser())))
  if (flags.json) printJson(accepted)
  else sayDone(accepted)
}

export async function switchAllAutomation(to: 'pause' | 'resume', flags: ChangeFlags): Promise<void> {
  const status = to === 'pause' ? 'paused' : 'active'
  const accepted = await tell(flags, ({ schedules }) => schedules.switchAutomation(status, requestOf(flags), currentUser()))
  if (flags.json) printJson(accepted)
  else print(accepted.message)
}

export async function showAutomation(flags: ProjectFlags): Promise<void> {
  const shown = await ask(flags, async ({ schedules }, leader) => {
    const found = await schedules.automation()
    if (leader === 'none') note('no server is running; schedules tick and sensors are evaluated only while one is (servo dev)')
    return { ...found, isOff: leader === 'answers' && !found.is_on }
  })
  const { isOff, ...status } = shown
  if (flags.json) {
    printJson(status)
    return
  }
  if (isOff) print(AUTOMATION_OFF)
  else if (shown.outage !== null) print(outageText(shown.outage))
  const by = shown.changed_by === null ? '' : ` by ${printable(shown.changed_by)}`
  const at = shown.changed_at === null ? '' : ` at ${localTime(shown.changed_at)}`
  const why = shown.reason === null ? '' : `: ${printable(shown.reason)}`
  if (shown.status === 'paused' || !isOff)
    print(
      shown.status === 'active'
        ? `active: ${shown.outage === null ? 'schedules tick and sensors are evaluated' : 'schedules without a condition tick'}`
        : `paused${by}${at}${why}`,
    )
}
