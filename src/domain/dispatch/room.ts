/** The number of attempts that may be with workers at a time, as the project and the machine say now. */
export interface Limits {
  /** On all queues together; absent without a limit. */
  readonly total?: number | undefined
  /** With our own workers. */
  readonly local: number
  /** How many more may wait beside our own workers when all of them are busy. Waiting attempts are not counted, because none of them runs. */
  readonly ahead: number
  /** Of other queues, by name. */
  readonly queues: Readonly<Record<string, { readonly limit?: number | null | undefined }>>
}

/**
 * The number of attempts offered to a queue elsewhere at a time, unless the project says otherwise. The number of its workers is not
 * known here: this is enough that none of them waits for a durable write, and few enough that urgent work does not wait long.
 */
const OFFERED_ELSEWHERE = 1_000

/** The number of attempts with our own workers, including those that wait beside them, and with all others. */
export interface Out {
  readonly local: number
  readonly elsewhere: number
}

/**
 * True if one of our own workers may be given one more. Attempts are queued behind them only when every worker is
 * busy. Otherwise an idle worker would start a queued attempt and exceed the limit.
 */
export function hasRoomHere({ total, local, ahead }: Limits, out: Out): boolean {
  const left = total === undefined ? local : Math.min(local, total - out.elsewhere)
  return out.local < (left < local ? left : local + ahead)
}

/** True if another queue may be offered one more, when `offered` of the attempts elsewhere are its own. */
export function hasRoomElsewhere({ total, local, queues }: Limits, out: Out, queue: string, offered: number): boolean {
  if (total !== undefined && Math.min(out.local, local) + out.elsewhere >= total) return false
  const own = Object.hasOwn(queues, queue) ? queues[queue]?.limit : undefined
  return offered < (own ?? OFFERED_ELSEWHERE)
}
