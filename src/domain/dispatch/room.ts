/** How many attempts may be out at a time, as the project and the machine say now. */
export interface Limits {
  /** On all queues together; absent when nobody has set it. */
  readonly total?: number | undefined
  /** With our own workers. */
  readonly local: number
  /** How many more may wait beside our own workers when all of those are busy. They are not counted: none of them runs. */
  readonly ahead: number
  /** Of other queues, by name. */
  readonly queues: Readonly<Record<string, { readonly limit?: number | null | undefined }>>
}

/**
 * What is offered at a time to workers that are not ours, unless the project says otherwise. How many there are is not known here:
 * enough that none of them waits for a durable write, few enough that what is urgent does not wait behind what was offered before it.
 */
const OFFERED_ELSEWHERE = 1_000

/** How many attempts are out: with our own workers, those that wait beside them included, and with all others. */
export interface Out {
  readonly local: number
  readonly elsewhere: number
}

/**
 * Whether one of our own workers may be given one more. Attempts are queued behind them only when every worker is
 * busy. Otherwise an idle worker would start a queued attempt and exceed the limit.
 */
export function hasRoomHere({ total, local, ahead }: Limits, out: Out): boolean {
  const left = total === undefined ? local : Math.min(local, total - out.elsewhere)
  return out.local < (left < local ? left : local + ahead)
}

/** Whether another queue may be offered one more, when `offered` of the attempts elsewhere are its own. */
export function hasRoomElsewhere({ total, local, queues }: Limits, out: Out, queue: string, offered: number): boolean {
  if (total !== undefined && Math.min(out.local, local) + out.elsewhere >= total) return false
  const own = Object.hasOwn(queues, queue) ? queues[queue]?.limit : undefined
  return offered < (own ?? OFFERED_ELSEWHERE)
}
