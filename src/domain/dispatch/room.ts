/** The number of attempts that may be with workers at a time, by the current settings of the project and the machine. */
export interface Limits {
  /** On all queues together; absent without a limit. */
  readonly total?: number | undefined
  /** With local workers. */
  readonly local: number
  /** How many more may wait for a local worker when all of them are busy. Waiting attempts are not counted, because none of them runs. */
  readonly ahead: number
  /** Of other queues, by name. */
  readonly queues: Readonly<Record<string, { readonly limit?: number | null | undefined }>>
}

/**
 * The number of attempts offered to a queue of remote workers at a time, unless the project sets a limit. The leader does not know
 * how many workers there are: this is enough that none of them waits for a durable write, and few enough that urgent work does not wait long.
 */
const MAX_OFFERED_PER_QUEUE = 1_000

/** The number of attempts with local workers, including those that wait for one, and with remote workers. */
export interface Out {
  readonly local: number
  readonly remote: number
}

/**
 * True if the local workers may be given one more. Attempts are queued behind them only when every worker is
 * busy. Otherwise an idle worker would start a queued attempt and exceed the limit.
 */
export function hasLocalRoom({ total, local, ahead }: Limits, out: Out): boolean {
  const left = total === undefined ? local : Math.min(local, total - out.remote)
  return out.local < (left < local ? left : local + ahead)
}

/** True if a queue of remote workers may be offered one more, when `offered` of the remote attempts are its own. */
export function hasRemoteRoom({ total, local, queues }: Limits, out: Out, queue: string, offered: number): boolean {
  if (total !== undefined && Math.min(out.local, local) + out.remote >= total) return false
  const own = Object.hasOwn(queues, queue) ? queues[queue]?.limit : undefined
  return offered < (own ?? MAX_OFFERED_PER_QUEUE)
}
