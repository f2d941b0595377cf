import type { z } from 'zod'
import {
  type AcceptedEvaluation,
  type AcceptedSensor,
  type DryEvaluation,
  type EvaluateBody,
  newSensorBody,
  type SensorDetail,
  sensorChangesBody,
  type WireDeadLetter,
  type WireEval,
} from '../../api/automation/sensor-contract.ts'
import type { RunOfEvaluation } from '../../contract/delivery.ts'
import { besidesRuns, wordsBesidesRuns } from '../../domain/sensors/evaluation/besides-runs.ts'
import { whyNoNewRun } from '../../domain/sensors/evaluation/runs-of-evaluation.ts'
import { evalStatuses } from '../../domain/sensors/sensor-evals.table.ts'
import { secretNotSet } from '../../domain/why/words-automation.ts'
import { ServoError } from '../../lib/error.ts'
import { ask, isNotLoaded, type Leadership, tell } from '../ask-and-tell.ts'
import { alignRows, type Cell, cutLast } from '../columns.ts'
import { momentFlag, oneOf, wholeNumber } from '../flags.ts'
import { colours, note, print, printable, printJson } from '../output.ts'
import { currentUser, type ProjectFlags } from '../project.ts'
import { localTime, localZone, shortId } from '../show-run.ts'
import { sayWhatStands } from './schedules.ts'
import { changedFlags, dataFlag, flagOf, type SourceFlags, sourceFlags } from './sensors/sensor-flags.ts'
import { showDetail, statusCell } from './sensors/show-sensor.ts'

type Listed = Omit<SensorDetail, 'last_eval'>

/** Without a server no sensor is evaluated, and its status does not show that. */
function sayNothingHears(sensors: readonly Listed[], leader: Leadership): void {
  if (leader === 'none' && sensors.some(({ status }) => status === 'active' || status === 'error'))
    note('no server is running: sensors are evaluated while one does (servo dev)')
}

interface PageFlags extends ProjectFlags {
  limit: string
  cursor?: string
  since?: string
  until?: string
  status?: string
}

const limitOf = (flags: PageFlags): number => wholeNumber('--limit', flags.limit, { min: 1, max: 1_000 })
const more = (cursor: string | null): void => {
  if (cursor !== null) print(colours.dim(`more: --cursor ${cursor}`))
}
/** Wide enough for whoever reads a file. An error in full is in `show`, and in --json. */
const PIPE_WIDTH = 200

const table = (names: readonly string[], rows: readonly Cell[][]): void => {
  const all = [names.map((text): Cell => ({ text, paint: colours.dim })), ...rows]
  for (const line of alignRows(cutLast(all, process.stdout.columns ?? PIPE_WIDTH))) print(line)
}

export async function listSensors(flags: PageFlags): Promise<void> {
  const query = { limit: limitOf(flags), cursor: flags.cursor }
  const { isUnknown, ...page } = await ask(flags, async (api, leader) => {
    const found = await api.sensors.list(query)
    sayNothingHears(found.sensors, leader)
    if (leader === 'answers' && found.sensors.length > 0) await sayWhatStands(api.schedules)
    return { ...found, isUnknown: found.sensors.length === 0 && (await isNotLoaded(flags, api, leader)) }
  })
  if (flags.json) {
    printJson(page)
    return
  }
  if (isUnknown) print('no sensors are on record')
  else if (page.sensors.length === 0)
    print('no sensors; declare one with sensor in the project, or make one: servo sensors create')
  else
    table(
      ['sensor', 'type', 'status', `last evaluation (${localZone()})`, `next poll (${localZone()})`, 'dead', 'why'],
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
    printJson(detail)
    return
  }
  showDetail(detail)
}

export async function listEvals(name: string, flags: PageFlags): Promise<void> {
  const status = flags.status === undefined ? undefined : oneOf('--status', flags.status, evalStatuses)
  const query = { ...spanOf(flags), status }
  const page = await ask(flags, ({ sensors }) => sensors.evals(name, query))
  if (flags.json) {
    printJson(page)
    return
  }
  if (page.evals.length === 0) print('no evaluations')
  else table([`evaluated (${localZone()})`, 'status', 'of', 'runs', ''], page.evals.map(shownEval))
  more(page.next_cursor)
}

const spanOf = (flags: PageFlags) => ({
  limit: limitOf(flags),
  cursor: flags.cursor,
  since: flags.since === undefined ? undefined : momentFlag('--since', flags.since),
  until: flags.until === undefined ? undefined : momentFlag('--until', flags.until),
})

const noNewRun = (one: RunOfEvaluation): string => `no new run: ${whyNoNewRun(one, { run: shortId, when: localTime })}`

function shownEval(one: WireEval): Cell[] {
  const until = one.eval_count > 1 ? ` to ${localTime(one.evaluated_until)} (${one.eval_count})` : ''
  const of = one.message_id === null ? 'poll' : `${one.message_id}${(one.try ?? 1) > 1 ? ` (try ${one.try})` : ''}`
  const { status } = one
  const paint = status === 'triggered' ? colours.green : status === 'error' ? colours.red : colours.dim
  const [error = ''] = (one.error ?? '').split('\n')
  const by = one.requested_by === null ? '' : `asked for by ${one.requested_by}`
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
  if (page.dead_letters.length === 0) print(flags.all ? 'no message failed' : 'no dead letters')
  else {
    const since = flags.all ? 'first try' : 'dead since'
    const rows = page.dead_letters.map((letter) => shownLetter(letter, flags.all ? letter.first_seen_at : letter.dead_since))
    table([since, 'message', 'status', 'tries', 'bytes', 'last error'], rows)
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
  const body = parsed(newSensorBody, { name, ...sourceFlags(name, flags), ...keyed(flags) })
  const accepted = await tell(flags, ({ sensors }) => sensors.create(body, currentUser()))
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
      throw new ServoError('invalid', 'no_changes', `nothing is to be changed of ${name}`, {
        hint: `Say what: servo sensors update ${name} --secret SHOP_SECRET_2; servo sensors update --help lists the options.`,
      })
    return await sensors.update(name, parsed(sensorChangesBody, { ...changes, ...keyed(flags) }), currentUser())
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
    throw new ServoError('invalid', 'bad_flag', '--data is missing', {
      hint: `servo sensors send ${name} --data '{"id": 7}', --data @message.json, or --data - for standard input`,
    })
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
  print(`${printable(sensor_name)}: a dry run, nothing is recorded`)
  if (report.outcome === 'error') print(colours.red(printable(report.error)))
  else if (report.outcome !== 'requests') print(colours.red('it took longer than its timeout'))
  else {
    for (const { asset_selection, partition_selection, key } of report.runs)
      print(
        printable(`  run ${[...asset_selection, ...(partition_selection ?? [])].join(' ')}${key == null ? '' : ` key ${key}`}`),
      )
    if (report.runs.length === 0) print('  it asks for no run')
    if (report.cursor != null) print(printable(`  cursor ${report.cursor}`))
    for (const change of ['added', 'removed'] as const)
      for (const keys of report[`partition_keys_${change}`] ?? []) print(printable(`  keys ${change} ${JSON.stringify(keys)}`))
  }
}

/** Its runs, or why it failed. A failed evaluation is on record: done, and not fine. */
function showResult(flags: ProjectFlags, { message_id, runs, error, status, conflict }: AcceptedEvaluation): void {
  if (status === 'error') process.exitCode = 1
  // As any request that contradicts what is on record: nothing was done.
  if (conflict) process.exitCode = 2
  if (flags.json) return
  if (conflict) print('  nothing was evaluated: a message of this id was accepted with other data. Send it under another --id.')
  if (message_id !== null) print(colours.dim(printable(`  message ${message_id}`)))
  for (const run of runs) print(`  ${run.created ? run.run_id : printable(noNewRun(run))}`)
  for (const line of (error ?? '').split('\n').filter(Boolean)) print(`  ${colours.red(printable(line))}`)
}
