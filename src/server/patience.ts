import { problemResponse } from '../api/problem.ts'
import { ServoError } from '../lib/error.ts'
import { SECOND_MS } from '../lib/time.ts'
import type { AlarmClock } from '../ports/clock.ts'
import type { WatchedStore } from './watched-store.ts'

/** Most requests are answered by then, and cost no look. */
const FIRST_LOOK_MS = 400
const LOOK_MS = 100
/**
 * In a row. They are counted, not timed: a process that is too busy to look is too busy to hear the answers of its store, which is no
 * outage. So a caller hears of one after 900 ms, or later if the process is busy.
 */
const SILENT_LOOKS = 5

export interface PatienceOptions {
  readonly clock: Pick<AlarmClock, 'after'>
  readonly store: Pick<WatchedStore, 'mark' | 'isSilentSince'>
  /** How much longer than a second the caller wants to wait. */
  readonly extraSec: number
  /** True while nothing can be written. */
  readonly isRecovering: () => boolean
}

/**
 * The answer, unless the storage is down: then the caller is told so within a second. What was begun goes on, because nobody can say
 * any more whether it happens. A person at a command would rather wait: `Prefer: wait=10` says so.
 */
export async function withPatience(
  answer: Promise<Response>,
  { clock, store, extraSec, isRecovering }: PatienceOptions,
): Promise<Response> {
  const enough = SILENT_LOOKS + (extraSec * SECOND_MS) / LOOK_MS
  const late = Promise.withResolvers<Response>()
  let mark: ReturnType<typeof store.mark> | undefined
  let silent = 0
  const look = (): void => {
    const isStuck = mark !== undefined && (isRecovering() || store.isSilentSince(mark))
    silent = isStuck ? silent + 1 : 0
    mark = store.mark()
    if (silent < enough) cancel = clock.after(LOOK_MS, look)
    else late.resolve(problemResponse(down(isRecovering())))
  }
  let cancel = clock.after(FIRST_LOOK_MS, look)
  const first = await Promise.race([answer, late.promise])
  cancel()
  // Nobody reads it any more.
  if (silent >= enough) void answer.then((unread) => unread.body?.cancel())
  return first
}

const down = (isRecovering: boolean): ServoError =>
  new ServoError(
    'unavailable',
    'storage_unavailable',
    isRecovering ? 'the state of the project cannot be written at the moment' : 'the storage does not answer',
    {
      hint: 'The server continues by itself once the storage answers. The request may have been recorded: check before you repeat it, or repeat it with the same key.',
    },
  )

const MAX_WAIT_SEC = 30

/** What `Prefer: wait=…` of a request asks for beyond the usual second (RFC 7240). */
export function extraSecOf(headers: Headers): number {
  const [, asked = '1'] = /(?:^|[,;\s])wait=(\d{1,3})(?:$|[,;\s])/.exec(headers.get('prefer') ?? '') ?? []
  return Math.min(Math.max(Number(asked), 1), MAX_WAIT_SEC) - 1
}
