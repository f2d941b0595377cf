import { problemResponse } from '../api/problem.ts'
import { ServoError } from '../lib/error.ts'
import type { AlarmClock } from '../ports/clock.ts'

/** A caller that is kept waiting for longer holds up those who wait for it in turn. */
const PATIENCE_MS = 900
/** After that, whether there is hope is asked this often. */
const AGAIN_MS = 500
/** A store that answers nothing for so long is down: a slow one answers something. */
export const SILENT_MS = 500

export interface PatienceOptions {
  readonly clock: Pick<AlarmClock, 'after'>
  /** Why nothing can come of waiting; undefined if something can. */
  readonly outage: () => string | undefined
}

/**
 * The answer, unless the storage is down: then the caller is told so within a second. What was begun goes on, because nobody can say
 * any more whether it happens.
 */
export async function withPatience(answer: Promise<Response>, { clock, outage }: PatienceOptions): Promise<Response> {
  const late = Promise.withResolvers<Response>()
  let cancel = clock.after(PATIENCE_MS, function look() {
    const reason = outage()
    if (reason === undefined) cancel = clock.after(AGAIN_MS, look)
    else late.resolve(problemResponse(down(reason)))
  })
  const first = await Promise.race([answer, late.promise])
  cancel()
  // Nobody reads it any more.
  void answer.then((unread) => (unread === first ? undefined : unread.body?.cancel()))
  return first
}

const down = (reason: string): ServoError =>
  new ServoError('unavailable', 'storage_unavailable', reason, {
    hint: 'The server continues by itself once the storage answers. The request may have been recorded: check before you repeat it, or repeat it with the same key.',
  })
