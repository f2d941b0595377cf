import type { WireTick } from '../../api/automation/schedule-contract.ts'
import { tickStatuses } from '../../contract/automation-statuses.ts'
import { headLine } from '../../domain/why/say.ts'
import { ask } from '../ask-and-tell.ts'
import type { Cell } from '../columns.ts'
import { choiceOf, limitFlag, spanFlags } from '../flags.ts'
import { colours, headsOf, print, printable, printJson, printTable } from '../output.ts'
import type { ProjectFlags } from '../project.ts'
import { localTime, localZone, shortId } from '../show-run.ts'

interface TickFlags extends ProjectFlags {
  limit?: string
  cursor?: string
  status?: string
  since?: string
  until?: string
}

/** The ticks of a schedule, or of all schedules. */
export async function listTicks(name: string | undefined, flags: TickFlags): Promise<void> {
  const query = {
    limit: limitFlag(flags.limit),
    cursor: flags.cursor,
    status: flags.status === undefined ? undefined : choiceOf('--status', flags.status, tickStatuses),
    ...spanFlags(flags),
  }
  const page = await ask(flags, ({ schedules }) =>
    name === undefined ? schedules.allTicks(query) : schedules.ticks(name, query),
  )
  if (flags.json) {
    printJson(page)
    return
  }
  const heads = [`tick (${localZone()})`, 'status', ...(name === undefined ? ['schedule'] : []), 'run', '']
  const rows = page.ticks.map((tick) => shownTick(tick, name === undefined))
  if (rows.length === 0) print('no ticks')
  else printTable(headsOf(heads), rows)
  if (page.next_cursor !== null) print(colours.dim(`more: --cursor ${page.next_cursor}`))
}

function shownTick(tick: WireTick & { readonly schedule_name?: string | null }, isOfAll: boolean): Cell[] {
  const isOne = tick.scheduled_until === null || tick.scheduled_until === tick.scheduled_for
  const until = isOne ? '' : ` to ${localTime(tick.scheduled_until)} (${tick.tick_count})`
  // A tick that a user asked for may be for a moment that had passed.
  const isLater = tick.evaluated_at !== null && localTime(tick.evaluated_at) !== localTime(tick.scheduled_for)
  const by = tick.requested_by === null ? '' : ` by ${tick.requested_by}${isLater ? ` at ${localTime(tick.evaluated_at)}` : ''}`
  const why = tick.cause === 'manual' ? `triggered${by}` : tick.cause === 'catch_up' ? `caught up${by}` : ''
  const paint = tick.status === 'triggered' ? colours.green : tick.status === 'failed' ? colours.red : colours.yellow
  return [
    { text: `${localTime(tick.scheduled_for ?? '')}${until}` },
    { text: tick.status ?? '', paint },
    ...(isOfAll ? [{ text: printable(tick.schedule_name ?? tick.schedule_id ?? '') }] : []),
    { text: tick.run_id === null ? '' : shortId(tick.run_id) },
    { text: printable(headLine(tick.reason ?? why)), paint: colours.dim },
  ]
}
