interface Lane {
  running: number
  readonly waiting: (() => void)[]
}

/** Lets so much run at a time under each name; what is more waits, in order. */
export class Lanes {
  readonly #atATime: number
  readonly #lanes = new Map<string, Lane>()

  constructor(atATime: number) {
    this.#atATime = atATime
  }

  async run<T>(name: string, act: () => Promise<T>): Promise<T> {
    const lane = this.#lanes.get(name) ?? { running: 0, waiting: [] }
    this.#lanes.set(name, lane)
    if (lane.running < this.#atATime) lane.running++
    else await new Promise<void>((resolve) => lane.waiting.push(resolve))
    try {
      return await act()
    } finally {
      // What waits takes the place over, so that nothing that comes now can overtake it.
      const next = lane.waiting.shift()
      if (next !== undefined) next()
      else if (--lane.running === 0) this.#lanes.delete(name)
    }
  }
}
