import type { Room } from '../../../adapters/system/disk-room.ts'
import { ServoError } from '../../../lib/error.ts'
import { MINUTE_MS } from '../../../lib/time.ts'
import type { AlarmClock } from '../../../ports/clock.ts'

/** Nothing fills a gigabyte much faster, and asking costs next to nothing. */
const EVERY_MS = MINUTE_MS

/** Says so when the disk begins to run full, once until there is enough room again. */
export class DiskWatch {
  readonly #clock: AlarmClock
  readonly #room: () => Promise<Room>
  readonly #onLow: (error: ServoError) => void
  #told: Room['state'] = 'enough'
  #cancel: (() => void) | undefined
  #isStopped = false

  constructor(clock: AlarmClock, room: () => Promise<Room>, onLow: (error: ServoError) => void) {
    this.#clock = clock
    this.#room = room
    this.#onLow = onLow
  }

  start(): void {
    void this.#look()
  }

  stop(): void {
    this.#isStopped = true
    this.#cancel?.()
  }

  async #look(): Promise<void> {
    // Where nothing can be said about the disk, nothing is.
    const room = await this.#room().catch(() => undefined)
    if (this.#isStopped) return
    if (room !== undefined && room.state !== this.#told) {
      const { state, message, hint } = room
      this.#told = state
      if (hint !== null)
        this.#onLow(
          new ServoError('unavailable', 'disk_low', `the disk is nearly full: ${message}`, { hint, facts: { ...room } }),
        )
    }
    this.#cancel = this.#clock.after(EVERY_MS, () => void this.#look())
  }
}
