import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import type { Child } from './support/child.ts'
import { Examination } from './support/examine.ts'
import { crashFolder, started } from './support/folder.ts'

/** The acceptance asks for 200; a developer who waits for `npm test` is content with fewer. */
const KILLS = Number(process.env['SERVO_KILLS'] ?? 5)
/** A folder lives through this many kills: enough for runs to be merged and files to be collected, few enough to replay. */
const KILLS_PER_FOLDER = 8
/** A child dies at a random moment after it has published this often: none, or a few times, whatever else the machine does. */
const MOST_PUBLISHES = 4
const LONGEST_WAIT_MS = 60
const PATIENCE_MS = 60_000 + KILLS * 10_000

/** Kills all processes of a folder at random moments, again and again, and examines what they left. */
async function killing(kills: number, processes: number, graceMs: number): Promise<string> {
  const seen = { kills: 0, acknowledged: 0, published: 0, reopened: 0, folders: 0, bases: 0, foldersWithMergedRuns: 0 }
  while (seen.kills < kills) {
    const dir = await crashFolder()
    const examination = new Examination(dir)
    const start = (round: number): Child[] =>
      Array.from({ length: processes }, (_, index) =>
        started({ dir, name: `process-${round}-${index}`, writers: 4, graceMs, reopen: true }),
      )
    const rounds = Math.min(KILLS_PER_FOLDER, Math.ceil((kills - seen.kills) / processes))
    // The next ones start while the last ones are examined.
    let next = start(0)
    for (let round = 0; round < rounds; round++) {
      const living = next
      await Promise.all(living.map((child) => child.begin()))
      await Promise.all(
        living.map(async (child) => {
          const publishes = Math.floor(Math.random() * (MOST_PUBLISHES + 1))
          await child.until(() => child.published >= publishes && child.acknowledged.length > 0)
          await sleep(LONGEST_WAIT_MS * Math.random())
          await child.kill()
          seen.kills += 1
        }),
      )
      next = round + 1 < rounds ? start(round + 1) : []
      for (const child of living) {
        expect(child.failure).toBeUndefined()
        examination.expectAcknowledged(child.acknowledged)
        seen.acknowledged += child.acknowledged.length
        seen.published += child.published
        seen.reopened += child.reopened.length
      }
      await examination.check(`round ${round} in ${dir}`)
    }
    const { merged, bases } = await examination.checkProjections(`after ${rounds} rounds in ${dir}`)
    seen.folders += 1
    seen.bases += bases
    if (merged) seen.foldersWithMergedRuns += 1
  }
  return JSON.stringify(seen)
}

describe('a process that is killed at any moment', { timeout: PATIENCE_MS }, () => {
  test('[L3][I1][I2][I6] loses no acknowledged event, writes none twice, and leaves tables that follow from the ledger', async () => {
    console.log(`one process at a time: ${await killing(KILLS, 1, 50)}`)
  })

  test('[I1][I4][I5] neither do two processes that append, compact and collect garbage in the same folder', async () => {
    console.log(`two processes at a time: ${await killing(Math.ceil(KILLS / 2), 2, 50)}`)
  })
})
