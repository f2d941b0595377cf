import type { WhyKind } from '../../domain/why/reasons.ts'
import { whyInWords } from '../../domain/why/words.ts'
import { ask, type Leadership } from '../ask-and-tell.ts'
import { limitFlag, spanFlags, splitPartition } from '../flags.ts'
import { colours, note, print, printable, printJson } from '../output.ts'
import type { ProjectFlags } from '../project.ts'
import { conflictLines } from '../show-conflict.ts'
import { localZone } from '../show-run.ts'

export interface WhyFlags extends ProjectFlags {
  at?: string
  partition?: string
  message?: string
}

/** Without a server nothing ticks, polls or runs, and the record does not show that. */
function sayNothingRuns(leader: Leadership): void {
  if (leader === 'none') note('no server is running; schedules, sensors, runs and backfills wait for one (servo dev)')
}

export async function showReasons(kind: WhyKind, name: string, flags: WhyFlags): Promise<void> {
  const { at, message } = flags
  const asked = kind === 'asset' ? splitPartition(name, flags.partition) : { name, partition: flags.partition }
  const { partition } = asked
  // Staleness depends on the code.
  const ofCode = kind === 'asset'
  const answer = await ask(
    flags,
    async ({ whys }, leader) => {
      const found = await whys.why(kind, asked.name, { at, partition, message })
      sayNothingRuns(leader)
      return found
    },
    { ofCode },
  )
  if (flags.json) {
    printJson(answer)
    return
  }
  for (const { depth, text } of whyInWords(answer, localZone())) {
    const line = `${'  '.repeat(depth)}${printable(text)}`
    print(depth === 0 ? colours.bold(line) : line)
  }
}

export interface ConflictFlags extends ProjectFlags {
  limit?: string
  cursor?: string
  since?: string
  until?: string
}

export async function listAllConflicts(flags: ConflictFlags): Promise<void> {
  const query = {
    limit: limitFlag(flags.limit),
    cursor: flags.cursor,
    ...spanFlags(flags),
  }
  const page = await ask(flags, ({ whys }) => whys.conflicts(query))
  if (flags.json) {
    printJson(page)
    return
  }
  if (page.conflicts.length === 0) print('no conflicts')
  for (const conflict of page.conflicts) for (const line of conflictLines(conflict, localZone())) print(line)
  if (page.next_cursor !== null) print(colours.dim(`more: --cursor ${page.next_cursor}`))
}
