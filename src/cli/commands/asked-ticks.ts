import type { AcceptedCatchup, ScheduleDetail } from '../../api/automation/schedule-contract.ts'
import { Cadence } from '../../cron/cadence.ts'
import { momentAsked } from '../../domain/why/moment-asked.ts'
import { momentsIn } from '../../domain/why/say.ts'
import { toIso, toMs } from '../../lib/time.ts'
import { ask, tell } from '../ask-and-tell.ts'
import { badFlag } from '../flags.ts'
import { colours, headsOf, print, printable, printJson, printTable } from '../output.ts'
import { currentUser, type ProjectFlags } from '../project.ts'
import { shortId } from '../show-run.ts'

type Definition = ScheduleDetail['definition']

export interface TriggerFlags extends ProjectFlags {
  partition?: string[]
  at?: string
  key?: string
}

export async function triggerSchedule(name: string, flags: TriggerFlags, now: Date): Promise<void> {
  const { partition: partitions, at, key } = flags
  if (partitions !== undefined && at !== undefined)
    throw badFlag(
      '--partition and --at cannot be used together',
      'Use --partition to name partitions, or --at to run the window of that time.',
    )
  const { accepted, isLive } = await tell(flags, async ({ schedules }, isLive) => {
    const body = {
      ...(partitions !== undefined && { partitions }),
      ...(at !== undefined && { scheduled_for: momentOf((await schedules.get(name)).definition, at, now) }),
      ...(key !== undefined && { request_id: key }),
    }
    return { accepted: await schedules.trigger(name, body, currentUser()), isLive }
  })
  if (flags.json) {
    printJson(accepted)
    return
  }
  const of = accepted.partitions === null ? '' : ` of ${some(accepted.partitions)}`
  const again = accepted.created ? '' : ' (already requested before)'
  const later = isLive ? '' : '; it starts when a server does (servo dev)'
  print(`${printable(accepted.schedule_name)} triggered: ${accepted.run_id}${printable(of)}${again}${later}`)
}

export interface CatchupFlags extends ProjectFlags {
  from?: string
  to?: string
  dryRun?: boolean
}

/** Runs ticks that were missed or skipped: those that are named, or all of a span. */
export async function catchUpSchedule(name: string, moments: readonly string[], flags: CatchupFlags, now: Date): Promise<void> {
  const { from, to, dryRun = false } = flags
  if (moments.length > 0 && (from !== undefined || to !== undefined))
    throw badFlag(
      'times and --from cannot be used together',
      'Name single ticks by their times, or all ticks of a span with --from and --to.',
    )
  if (moments.length === 0 && from === undefined)
    throw badFlag(
      to === undefined ? 'no ticks named' : 'missing option --from',
      `Write: servo schedules catchup ${name} 05:00, or servo schedules catchup ${name} --from 2025-01-10 --to 2025-01-15 --dry-run`,
    )
  const give = dryRun ? ask : tell
  const { answer, definition } = await give(flags, async ({ schedules }) => {
    const { definition } = await schedules.get(name)
    const { schedule_id } = definition
    const times =
      from === undefined
        ? moments.map((text) => momentOf(definition, text, now))
        : ticksBetween(definition, { from, to }, now.getTime())
    const ticks = times.map((scheduled_for) => ({ schedule_id, scheduled_for }))
    const none: AcceptedCatchup = { dry_run: dryRun, accepted: [], refused: [] }
    const answer = ticks.length === 0 ? none : await schedules.catchUp({ ticks, dry_run: dryRun }, currentUser())
    return { answer, definition }
  })
  // A tick of a span that ran already is no surprise; one that was named is.
  if (moments.length > 0 && answer.refused.length > 0) process.exitCode = 1
  if (flags.json) printJson(answer)
  else showCatchup(answer, definition)
}

function showCatchup(
  { accepted, refused, dry_run }: AcceptedCatchup,
  { schedule_name, timezone, created_at }: Definition,
): void {
  if (accepted.length + refused.length === 0) {
    print(`${printable(schedule_name)} has no ticks in that span; it was declared at ${momentsIn(timezone, null)(created_at)}`)
    return
  }
  const when = momentsIn(timezone, null)
  const rows = [
    ...accepted.map(({ scheduled_for, run_id, partitions }) => ({
      scheduled_for,
      cells: [
        { text: dry_run ? 'would run' : 'triggered', paint: colours.green },
        { text: run_id === null ? '' : shortId(run_id) },
        { text: partitions === null ? '' : printable(some(partitions)), paint: colours.dim },
      ],
    })),
    ...refused.map(({ scheduled_for, reason }) => ({
      scheduled_for,
      cells: [{ text: 'refused', paint: colours.yellow }, { text: '' }, { text: printable(reason), paint: colours.dim }],
    })),
  ].sort((a, b) => (a.scheduled_for < b.scheduled_for ? -1 : 1))
  printTable(
    headsOf([`tick (${timezone})`, '', 'run', '']),
    rows.map(({ scheduled_for, cells }) => [{ text: when(scheduled_for) }, ...cells]),
  )
  if (dry_run) print(colours.dim('dry run: nothing was requested'))
}

/** The first few partitions, and how many more there are. */
function some(partitions: readonly string[]): string {
  const more = partitions.length - SHOWN_PARTITIONS
  return more > 0 ? `${partitions.slice(0, SHOWN_PARTITIONS).join(', ')} and ${more} more` : partitions.join(', ')
}

const SHOWN_PARTITIONS = 5

/** One request may name as many ticks. */
const MOST_TICKS = 1_000

const cadenceOf = ({ cron_expressions, timezone, start_at, end_at }: Definition): Cadence =>
  new Cadence({
    ...{ cron_expressions, timezone },
    start_at: start_at === null ? null : toMs(start_at),
    end_at: end_at === null ? null : toMs(end_at),
  })

/** The moment that a user means, in the zone of the schedule: its tick in that minute, if there is one. */
function momentOf(definition: Definition, text: string, now: Date): string {
  const { from, to } = momentAsked(text, definition.timezone, now.getTime())
  const tick = cadenceOf(definition).after(from - 1)
  return toIso(tick !== undefined && tick <= to ? tick : from)
}

/** Every tick from one moment to another, both included. A day as the end is the whole day; without one, it is now. */
function ticksBetween(definition: Definition, { from, to }: { from: string; to: string | undefined }, now: number): string[] {
  const { timezone } = definition
  const asked = momentAsked(from, timezone, now).from
  const last = to === undefined ? now : momentAsked(/^[\d-]{10}$/.test(to) ? `${to}T23:59` : to, timezone, now).to
  if (asked > last)
    throw badFlag(`--from ${from} is after ${to === undefined ? 'now' : `--to ${to}`}`, 'Use an earlier --from.')
  // Before it was declared it had no ticks to miss.
  const first = Math.max(asked, toMs(definition.created_at) + 1)
  const cadence = cadenceOf(definition)
  const count = cadence.count(first - 1, Math.min(last, now))
  if (count > MOST_TICKS)
    throw badFlag(
      `${definition.schedule_name} has ${count.toLocaleString('en')} ticks in that span; the limit is ${MOST_TICKS.toLocaleString('en')} at a time`,
      'Use a shorter span.',
    )
  const found: string[] = []
  for (let tick = cadence.after(first - 1); tick !== undefined && tick <= Math.min(last, now); tick = cadence.after(tick))
    found.push(toIso(tick))
  return found
}
