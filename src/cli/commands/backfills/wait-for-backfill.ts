import { setTimeout as sleep } from 'node:timers/promises'
import type { CreatedBackfill, WireBackfill } from '../../../api/automation/backfill-contract.ts'
import { isServoError, ServoError } from '../../../lib/error.ts'
import { ask } from '../../ask-and-tell.ts'
import type { Cell } from '../../columns.ts'
import { print, printJson } from '../../output.ts'
import type { ProjectFlags } from '../../project.ts'
import { countsOf, endedOf, isOver, stateText } from '../../results/backfill-counts.ts'
import { localTime } from '../../show-run.ts'
import { LiveBlock } from '../../watch/live-block.ts'
import { lineOf } from './shown-backfill.ts'

/** Often enough to see it move; a backfill takes longer than a run. */
const LOOK_EVERY_MS = 500
/** Looks without a server after which nobody seems to start another. */
const LOOKS_WITHOUT_SERVER = 10

/** With --json: the backfill, and what became of the request for it. */
export const createdJson = (made: CreatedBackfill, backfill: WireBackfill): object => ({ ...backfill, ...made })

interface Begun {
  readonly made: CreatedBackfill
  readonly backfill: WireBackfill
  /** Says that it has begun. */
  readonly say: () => void
}

/** Shows the progress until the end, and exits with 1 unless it succeeded. Leaving does not stop it. */
export async function waitForBackfill({ made, backfill: first, say }: Begun, flags: ProjectFlags): Promise<void> {
  let shown = first
  const { backfill_id: id } = first
  const live = flags.json ? undefined : LiveBlock.on(() => [progressOf(shown)])
  const leave = new AbortController()
  const onSignal = (): void => leave.abort()
  // Before anything is said, because a signal may follow at once.
  process.once('SIGINT', onSignal)
  say()
  live?.start()
  try {
    for (let without = 0; !isOver(shown) && !leave.signal.aborted; ) {
      await sleep(LOOK_EVERY_MS, undefined, { signal: leave.signal }).catch(() => undefined)
      const now = await ask(flags, async ({ backfills }, leadership) => ({ ...(await backfills.get(id)), leadership })).catch(
        ifUnavailable,
      )
      const isAnswered = 'backfill' in now
      if (isAnswered) shown = now.backfill
      without = isAnswered && now.leadership === 'answers' ? 0 : without + 1
      if (without > LOOKS_WITHOUT_SERVER && !isOver(shown)) throw isAnswered ? serverGone(shown) : now
    }
  } finally {
    process.off('SIGINT', onSignal)
    live?.stop()
  }
  if (flags.json) printJson(createdJson(made, shown))
  else if (isOver(shown)) print(lineOf(shown))
  else print(`\n${id} continues on the server; cancel it with: servo backfills cancel ${id}`)
  if (!isOver(shown)) process.exitCode = 130
  else if (shown.state !== 'SUCCEEDED') process.exitCode = 1
}

/** A server that dies while it answers is a look without a server: another may be started. */
function ifUnavailable(error: unknown): ServoError {
  if (isServoError(error, 'unavailable')) return error
  throw error
}

const serverGone = (backfill: WireBackfill): ServoError =>
  new ServoError(
    'unavailable',
    'no_server',
    `${backfill.backfill_id} is ${stateText(backfill)}, and no server is running to continue it`,
    { hint: 'Start one: servo dev. It continues where it was.' },
  )

export const needsServer = (): ServoError =>
  new ServoError('unavailable', 'no_server', 'no server is running, and --wait needs one to carry out the backfill', {
    hint: 'Start one with servo dev, or leave --wait out to record the backfill for the next server. Nothing was recorded.',
  })

const BAR = 30

function progressOf(backfill: WireBackfill): Cell[] {
  const { total_partitions: total, expected_end } = backfill
  const full = Math.floor((BAR * endedOf(backfill)) / total)
  const bar = `${'█'.repeat(full)}${'░'.repeat(BAR - full)}`
  const rest = expected_end === null ? '' : `, done at ${localTime(expected_end)}`
  return [{ text: bar }, { text: `${countsOf(backfill)}${rest}` }]
}
