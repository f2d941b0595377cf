import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Listening, Notifier } from '../../ports/notifier.ts'

/** One ledger without any segment; every test asks for one of its own. */
export interface OpenedNotifier {
  /** The notifier of one more process. */
  readonly join: () => Notifier
  /** Makes the segment durable, as any writer does; the writer announces it then. */
  readonly write: (segment: string) => Promise<void>
  readonly close?: () => Promise<void>
}

export type OpenNotifier = () => Promise<OpenedNotifier>

const PATIENCE_MS = 30_000

/** A segment for each number. All of one day: days are a matter of the adapter. */
const segment = (number: number): string => `01J${String(number).padStart(23, '0')}`

/** The law of `ports/notifier.ts`, as tests. Call it from the test file of an adapter: it conforms when they pass. */
export function notifierConformance(name: string, openNotifier: OpenNotifier): void {
  describe(name, { timeout: PATIENCE_MS }, () => {
    let opened: OpenedNotifier
    let listenings: Listening[] = []

    beforeEach(async () => {
      opened = await openNotifier()
    })

    afterEach(async () => {
      for (const listening of listenings) listening.close()
      listenings = []
      await opened.close?.()
    })

    async function listener(notifier: Notifier): Promise<{ received: Set<string>; calls: number; listening: Listening }> {
      const received = new Set<string>()
      const ear = { received, calls: 0 }
      const listening = await notifier.listen({
        onSegments: (segments) => {
          ear.calls += 1
          for (const each of segments) received.add(each)
        },
        onMissed: () => undefined,
      })
      listenings.push(listening)
      return Object.assign(ear, { listening })
    }

    async function writeSegments(by: Notifier, numbers: readonly number[]): Promise<string[]> {
      for (const number of numbers) {
        await opened.write(segment(number))
        by.announce(segment(number))
      }
      return numbers.map(segment)
    }

    it('every listener gets a segment, whichever process wrote it', async () => {
      const [one, other] = [opened.join(), opened.join()]
      const ears = [await listener(one), await listener(other), await listener(other)]
      const segments = await writeSegments(one, [1, 2, 3])
      for (const ear of ears) await expect.poll(() => [...ear.received].sort()).toEqual(segments)
    })

    it('a listener gets every one of many segments', async () => {
      const ear = await listener(opened.join())
      const segments = await writeSegments(
        opened.join(),
        Array.from({ length: 200 }, (_, i) => i),
      )
      await expect.poll(() => ear.received.size).toBe(200)
      expect([...ear.received].sort()).toEqual(segments)
    })

    it('a closed listener gets nothing more, and the others go on', async () => {
      const notifier = opened.join()
      const [leaves, stays] = [await listener(notifier), await listener(notifier)]
      leaves.listening.close()
      leaves.listening.close()
      await writeSegments(notifier, [1])
      await expect.poll(() => stays.received.size).toBe(1)
      expect(leaves.received.size).toBe(0)
    })

    it('announcing never throws, with or without listeners', async () => {
      const notifier = opened.join()
      expect(() => notifier.announce(segment(1))).not.toThrow()
      const ear = await listener(notifier)
      ear.listening.close()
      expect(() => notifier.announce(segment(2))).not.toThrow()
    })

    it('a listener is not called before its announcer has finished', async () => {
      const notifier = opened.join()
      const ear = await listener(notifier)
      await opened.write(segment(1))
      const before = ear.calls
      notifier.announce(segment(1))
      expect(ear.calls).toBe(before)
      await expect.poll(() => ear.received.size).toBe(1)
    })
  })
}
