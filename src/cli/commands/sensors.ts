import type { z } from 'zod'
import type {
  AcceptedEvaluation,
  AcceptedSensor,
  DryEvaluation,
  EvaluateBody,
  SensorDetail,
  WireDeadLetter,
  WireEval,
} from '../../api/automation/sensor-contract.ts'
import { evalStatuses, sensorStatuses } from '../../contract/automation-statuses.ts'
import type { RunOfEvaluation } from '../../contract/delivery.ts'
import { besidesRuns, wordsBesidesRuns } from '../../domain/sensors/evaluation/besides-runs.ts'
import { whyNoNewRun } from '../../domain/sensors/evaluation/no-new-run.ts'
import { secretNotSet } from '../../domain/why/words-automation.ts'
import { ServoError } from '../../lib/error.ts'
import { ask, isNotLoaded, type Leadership, tell } from '../ask-and-tell.ts'
import type { Cell } from '../columns.ts'
import { badFlag, choiceOf, limitFlag, spanFlags, wholeNumber } from '../flags.ts'
import { colours, headsOf, note, print, printable, printJson, printTable } from '../output.ts'
import { currentUser, type ProjectFlags } from '../project.ts'
import { localTime, localZone, shortId } from '../show-run.ts'
import { inFlags, sayWhatStands } from './schedules.ts'
import { changedFlags, dataFlag, flagOf, type SourceFlags, sourceFlags } from './sensors/sensor-flags.ts'
import { showDetail, statusCell } from './sensors/show-sensor.ts'

type Listed = Omit<SensorDetail, 'last_eval'>

/** The name first: it is what programs look for. */
const named = <Detail extends Listed>(detail: Detail) => ({ sensor_name: detail.definition.sensor_name, ...detail })

/** Without a server no sensor is evaluated, and its status does not show that. */
function sayNothingHears(sensors: readonly Listed[], leader: Leadership): void {
  if (leader === 'none' && sensors.some(({ status }) => status === 'active' || status === 'error'))
    note('no server is running; sensors are evaluated only while one is (servo dev)')
}

interface PageFlags extends ProjectFlags {
  limit?: string
  cursor?: string
  since?: string
  until?: string
  status?: string
}

const more = (cursor: string | null): void => {
  if (cursor !== null) print(colours.dim(`more: --cursor ${cursor}`))
}
export async function listSensors(flags: PageFlags): Promise<void> {
  const status = flags.status === undefined ? undefined : choiceOf('--status', flags.status, sensorStatuses)
  const query = { limit: limitFlag(flags.limit), cursor: flags.cursor, status }
  const { isUnknown, ...page } = await ask(flags, async (api, leader) => {
    const found = await api.sensors.list(query)
    sayNothingHears(found.sensors, leader)
    if (leader === 'answers' && found.sensors.length > 0) await sayWhatStands(api.schedules)
    return { ...found, isUnknown: found.sensors.length === 0 && (await isNotLoaded(flags, api, leader)) }
  })
  if (flags.json) {
    printJson({ ...page, sensors: page.sensors.map(named) })
    return
  }
  if (isUnknown) print('no sensors on record')
  else if (page.sensors.length === 0)
    print(
      status === undefined
        ? 'no sensors on record; declare one in the project and start servo dev once, or create one: servo sensors create'
        : `no sensor is ${status === 'error' ? 'in error' : status}`,
    )
  else
    printTable(
      headsOf(['sensor', 'type', 'status', `last evaluation (${localZone()})`, `next poll (${localZone()})`, 'dead', 'why']),
      page.sensors.map(listed),
    )
  more(page.next_cursor)
}

function listed({ definition, state, status, status_reason, next_poll_at, unrecorded_polls, senders }: Listed): Cell[] {
  const missing = senders?.missing_secrets ?? []
  const [error = ''] = missing.length > 0 ? [secretNotSet(missing)] : (state?.last_error ?? '').split('\n')
  const isPaused = status === 'paused' && missing.length === 0
  return [
    { text: printable(definition.sensor_name) },
    { text: definition.sensor_type },
    statusCell(status),
    { text: localTime(unrecorded_polls?.last ?? state?.last_evaluation_at ?? null) },
    { text: localTime(next_poll_at) },
    { text: state === null || state.dead_letters === 0 ? '' : String(state.dead_letters), paint: colours.red },
    isPaused ? { text: printable(status_reason ?? ''), paint: colours.dim } : { text: printable(error), paint: colours.red },
  ]
}

export async function showSensor(name: string, flags: ProjectFlags): Promise<void> {
  const detail = await ask(flags, async ({ sensors }, leader) => {
    const found = await sensors.get(name)
    sayNothingHears([found], leader)
    return found
  })
  if (flags.json) {
    printJson(named(detail))
    return
  }
  showDetail(detail)
}

export async function listEvals(name: string, flags: PageFlags): Promise<void> {
  const status = flags.status === undefined ? undefined : choiceOf('--status', flags.status, evalStatuses)
  const query = { ...spanOf(flags), status }
  const page = await ask(flags, ({ sensors }) => sensors.evals(name, query))
  if (flags.json) {
    printJson(page)
    return
  }
  if (page.evals.length === 0) print('no evaluations')
  else printTable(headsOf([`evaluated (${localZone()})`, 'status', 'of', 'runs', '']), page.evals.map(shownEval))
  more(page.next_cursor)
}

const spanOf = (flags: PageFlags) => ({
  limit: limitFlag(flags.limit),
  cursor: flags.cursor,
  ...spanFlags(flags),
})

const noNewRun = (one: RunOfEvaluation): string => `no new run: ${whyNoNewRun(one, { run: shortId, when: localTime })}`

function shownEval(one: WireEval): Cell[] {
  const until = one.eval_count > 1 ? ` to ${localTime(one.evaluated_until)} (${one.eval_count})` : ''
  const of = one.message_id === null ? 'poll' : `${one.message_id}${(one.try ?? 1) > 1 ? ` (try ${one.try})` : ''}`
  const { status } = one
  const paint = status === 'triggered' ? colours.green : status === 'error' ? colours.red : colours.dim
  const [error = ''] = (one.error ?? '').split('\n')
  const by = one.requested_by === null ? '' : `requested by ${one.requested_by}`
  const made = one.runs.filter(({ created }) => created)
  const noNew = one.runs.filter(({ created }) => !created).map(noNewRun)
  return [
    { text: `${localTime(one.evaluated_at)}${until}` },
    { text: status, paint },
    { text: printable(of) },
    { text: made.map(({ run_id }) => shortId(run_id)).join(' ') },
    {
      text: printable([error, ...noNew, ...wordsBesidesRuns(besidesRuns(one)), by].filter(Boolean).join(', ')),
      paint: colours.dim,
    },
  ]
}

export async function listDeadLetters(name: string, flags: PageFlags & { all?: boolean }): Promise<void> {
  const query = { ...spanOf(flags), status: flags.all ? ('all' as const) : ('dead' as const) }
  const page = await ask(flags, ({ sensors }) => sensors.deadLetters(name, query))
  if (flags.json) {
    printJson(page)
    return
  }
  if (page.dead_letters.length === 0) print(flags.all ? 'no failed messages' : 'no dead letters')
  else {
    const since = flags.all ? 'first try' : 'dead since'
    const rows = page.dead_letters.map((letter) => shownLetter(letter, flags.all ? letter.first_seen_at : letter.dead_since))
    printTable(headsOf([since, 'message', 'status', 'tries', 'bytes', 'last error'], ['tries', 'bytes']), rows)
  }
  more(page.next_cursor)
}

const shownLetter = (letter: WireDeadLetter, since: string | null): Cell[] => [
  { text: localTime(since) },
  { text: printable(letter.message_id) },
  { text: letter.status, paint: letter.status === 'dead' ? colours.red : colours.yellow },
  { text: String(letter.tries), right: true },
  { text: letter.body_size === null ? '' : String(letter.body_size), right: true },
  { text: printable(letter.last_error?.split('\n')[0] ?? ''), paint: colours.red },
]

interface ChangeFlags extends ProjectFlags {
  reason?: string
  key?: string
  expectVersion?: string
}

const keyed = ({ key }: ChangeFlags) => (key === undefined ? {} : { request_id: key })
const reasoned = ({ reason, ...flags }: ChangeFlags) => ({ ...(reason !== undefined && { reason }), ...keyed(flags) })
const expectedOf = ({ expectVersion }: ChangeFlags): number | undefined =>
  expectVersion === undefined ? undefined : wholeNumber('--expect-version', expectVersion, { min: 0, max: 2_147_483_647 })

function tellChange(flags: ProjectFlags, { sensor_name, message }: AcceptedSensor, all: unknown, isOfMessage = false): void {
  if (flags.json) printJson(all)
  else print(printable(isOfMessage ? message : `${sensor_name}: ${message}`))
}

export async function switchSensors(to: 'pause' | 'resume', names: string[], flags: ChangeFlags): Promise<void> {
  const expected = expectedOf(flags)
  const done = await tell(flags, async ({ sensors }) => {
    // Every name is looked up before anything changes: a slip in the second must not leave the first paused.
    for (const name of names) await sensors.get(name)
    const accepted: AcceptedSensor[] = []
    for (const name of names) accepted.push(await sensors[to](name, reasoned(flags), currentUser(), expected))
    return accepted
  })
  if (flags.json) printJson(done)
  else for (const one of done) tellChange(flags, one, one)
}

export async function resetCursor(name: string, flags: ChangeFlags & { to?: string }): Promise<void> {
  const expected = expectedOf(flags)
  const body = { cursor: flags.to ?? null, ...reasoned(flags) }
  const accepted = await tell(flags, ({ sensors }) => sensors.resetCursor(name, body, currentUser(), expected))
  tellChange(flags, accepted, accepted)
}

export async function createSensor(name: string, flags: ChangeFlags & SourceFlags): Promise<void> {
  const { newSensorBody } = await import('../../api/automation/sensor-contract.ts')
  const body = parsed(newSensorBody, { name, ...sourceFlags(name, flags), ...keyed(flags) })
  const accepted = await tell(flags, ({ sensors }) => inFlags(() => sensors.create(body, currentUser())))
  tellChange(flags, accepted, accepted)
}

function parsed<T>(schema: z.ZodType<T>, given: object): T {
  const { data, error } = schema.safeParse(given)
  if (error === undefined) return data
  const [issue] = error.issues
  throw new ServoError('invalid', 'bad_sensor', `${flagOf(issue?.path.join('.') ?? '')}: ${issue?.message}`)
}

export async function updateSensor(
  name: string,
  flags: ChangeFlags & SourceFlags & { name?: string; enable?: boolean },
): Promise<void> {
  const accepted = await tell(flags, async ({ sensors }) => {
    const { definition } = await sensors.get(name)
    const changes = changedFlags(name, definition.config, flags)
    if (Object.keys(changes).length === 0)
      throw new ServoError('invalid', 'no_changes', `no changes given for ${name}`, {
        hint: 'Name what to change, such as --secret SHOP_SECRET_2. servo sensors update --help lists the options.',
      })
    const { sensorChangesBody } = await import('../../api/automation/sensor-contract.ts')
    const body = parsed(sensorChangesBody, { ...changes, ...keyed(flags) })
    return await inFlags(() => sensors.update(name, body, currentUser()))
  })
  tellChange(flags, accepted, accepted)
}

export async function deleteSensor(name: string, flags: ChangeFlags): Promise<void> {
  const accepted = await tell(flags, ({ sensors }) => sensors.remove(name, keyed(flags), currentUser()))
  tellChange(flags, accepted, accepted)
}

interface MessageFlags extends ChangeFlags {
  data?: string
  id?: string
  attribute?: string[]
  dryRun?: boolean
}

/** Evaluates a sensor now: with a message, or a poll ahead of its time. */
export async function evaluateSensor(name: string, flags: MessageFlags): Promise<void> {
  const body: EvaluateBody = { dry_run: flags.dryRun ?? false, ...(await dataFlag(flags)), ...keyed(flags) }
  if (flags.id !== undefined) body.message_id = flags.id
  showEvaluation(flags, await tell(flags, ({ sensors }) => sensors.evaluate(name, body, currentUser())))
}

export async function sendMessage(name: string, flags: MessageFlags): Promise<void> {
  if (flags.data === undefined)
    throw badFlag(
      'missing option --data',
      `Write: servo sensors send ${name} --data '{"id": 7}', or --data @message.json, or --data - for standard input`,
    )
  await evaluateSensor(name, flags)
}

export async function replayDeadLetter(name: string, message: string, flags: MessageFlags): Promise<void> {
  const body = { ...(await dataFlag(flags)), ...keyed(flags) }
  const replayed = await tell(flags, ({ sensors }) => sensors.replay(name, message, body, currentUser()))
  tellChange(flags, replayed, replayed, replayed.message.startsWith(`${message} `))
  if (replayed.evaluation !== null) showResult(flags, replayed.evaluation)
}

function showEvaluation(flags: ProjectFlags, evaluated: AcceptedEvaluation | DryEvaluation): void {
  if (!evaluated.dry_run) {
    tellChange(flags, evaluated, evaluated)
    showResult(flags, evaluated)
    return
  }
  const { report, sensor_name } = evaluated
  if (report.outcome !== 'requests') process.exitCode = 1
  if (flags.json) {
    printJson(evaluated)
    return
  }
  print(`${printable(sensor_name)}: dry run, nothing is recorded`)
  if (report.outcome === 'error') print(colours.red(printable(report.error)))
  else if (report.outcome !== 'requests') print(colours.red('the evaluation took longer than its timeout'))
  else {
    for (const { asset_selection, partition_selection, key } of report.runs)
      print(
        printable(`  run ${[...asset_selection, ...(partition_selection ?? [])].join(' ')}${key == null ? '' : ` key ${key}`}`),
      )
    if (report.runs.length === 0) print('  no run requested')
    if (report.cursor != null) print(printable(`  cursor ${report.cursor}`))
    for (const change of ['added', 'removed'] as const)
      for (const keys of report[`partition_keys_${change}`] ?? []) print(printable(`  keys ${change} ${JSON.stringify(keys)}`))
  }
}

/** Its runs, or why it failed. A failed evaluation is on record: done, and not fine. */
function showResult(flags: ProjectFlags, evaluation: AcceptedEvaluation): void {
  const { message_id, runs, error, status, conflict, repeated } = evaluation
  if (status === 'error') process.exitCode = 1
  // As any request that contradicts what is on record: nothing was done.
  if (conflict) process.exitCode = 2
  if (flags.json) return
  if (conflict)
    print('  not evaluated: a message with this id and other data was accepted before. Send this one under another --id.')
  if (message_id !== null) print(colours.dim(printable(`  message ${message_id}`)))
  if (repeated) for (const { run_id } of runs) print(`  ${run_id} was requested then`)
  else for (const run of runs) print(`  ${run.created ? run.run_id : printable(noNewRun(run))}`)
  for (const line of (error ?? '').split('\n').filter(Boolean)) print(`  ${colours.red(printable(line))}`)
}
