import type { EventsApi, WireEvent } from '../../api/events/event-contract.ts'
import { isUlid } from '../../lib/ulid.ts'
import { ask } from '../ask-and-tell.ts'
import { badFlag, limitFlag } from '../flags.ts'
import { colours, endWhenUnread, note, print, printable, printJsonLine } from '../output.ts'
import type { ProjectFlags } from '../project.ts'

export interface EventFlags extends ProjectFlags {
  follow?: boolean
  run?: string
  type?: string
  asset?: string
  after?: string
  limit?: string
}

/** Prints what is on record, the oldest first; with --follow what happens from now on, or from a place on. */
export async function showEvents(flags: EventFlags): Promise<void> {
  const { run, type, asset, after } = flags
  if (after !== undefined && after !== 'beginning' && after !== 'now' && !isUlid(after))
    throw badFlag(`invalid value '${after}' for --after`, 'Use the id of an event, `beginning` or `now`.')
  const limit = limitFlag(flags.limit, 100)
  endWhenUnread()
  await ask(flags, async ({ events }, leader) => {
    if (flags.follow && leader === 'answers') return await follow(events, { run, type, asset, after: after ?? 'now' }, flags)
    const page = await events.page({ run, type, asset, after: after ?? 'beginning', limit })
    for (const event of page.events) printEvent(event, flags)
    if (flags.follow) note('no server is running, so nothing more happens')
    else if (page.next_cursor !== null) note(`there are more; go on with --after ${page.next_cursor}`)
  })
}

async function follow(events: EventsApi, query: Parameters<EventsApi['follow']>[0], flags: EventFlags): Promise<void> {
  const leave = new AbortController()
  process.once('SIGINT', () => leave.abort())
  for await (const event of events.follow(query, leave.signal)) printEvent(event, flags)
}

/** What an event is about, as far as one line can tell. */
const SUBJECTS = ['run_id', 'task_key', 'asset_key', 'schedule_id', 'sensor_id', 'backfill_id', 'outcome', 'to_state', 'status']

function printEvent(event: WireEvent, flags: EventFlags): void {
  if (flags.json) {
    printJsonLine(event)
    return
  }
  const { payload } = event
  const about = SUBJECTS.flatMap((name) => (typeof payload[name] === 'string' ? [payload[name]] : [])).join(' ')
  const time = colours.dim(event.timestamp)
  print(`${time} ${colours.dim(event.event_id)} ${event.event_type} ${printable(about)}`.trimEnd())
}
