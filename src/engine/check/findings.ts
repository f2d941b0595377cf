import { isServoError, messageOf } from '../../lib/error.ts'
import type { Damage } from '../ledger/read-segment.ts'
import { archiveAt } from '../paths.ts'

/** The days of the archives among these: what is missing of such a day was in one of them, as far as anybody can tell. */
export const daysOfArchives = (damaged: Iterable<Damage>): Set<string> =>
  new Set([...damaged].flatMap(({ path }) => archiveAt(path)?.day ?? []))

/** What is wrong, one finding for each path: the first one says most. */
export class Findings {
  readonly #byPath = new Map<string, Damage>()

  get all(): Damage[] {
    return [...this.#byPath.values()]
  }

  get count(): number {
    return this.#byPath.size
  }

  has(path: string): boolean {
    return this.#byPath.has(path)
  }

  report(path: string, message: string): void {
    if (!this.#byPath.has(path)) this.#byPath.set(path, { path, message })
  }

  /** Reports the damage that some work meets, under the path that the error names or the one given. Returns what the work did otherwise. */
  async try<T>(path: string, work: () => Promise<T> | T): Promise<T | undefined> {
    try {
      return await work()
    } catch (error) {
      if (!isServoError(error, 'corrupt')) throw error
      const { path: named } = error.facts
      this.report(typeof named === 'string' ? named : path, messageOf(error))
      return undefined
    }
  }
}
