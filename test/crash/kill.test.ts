import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { Child } from './child.ts'
import { Examination } from './examine.ts'

/** The acceptance asks for 200; a developer who waits for `npm test` is content with fewer. */
const KILLS = Number(process.env['SERVO_KILLS'] ?? 40)
/** A folder lives through this many kills: enough for runs to be merged and files to be collected, few enough to replay. */
const KILLS_PER_FOLDER = 8
/** Longest life of a child; the shortest is a tenth. */
const LIFE_MS = 300
const PATIENCE_MS = 60_000 + KILLS * 10_000

const children: Child[] = []
const folders: string[] = []

afterEach(async () => {
  await Promise.all(children.splice(0).map((child) => child.kill()))
  await Promise.all(folders.splice(0).map((dir) => rm(dir, { recursive: true, force: true })))
})

async function newFolder(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'servo-crash-'))
  folders.push(dir)
  return dir
}

function started(dir: string, name: string, graceMs: number): Child {
  const child = new Child({ dir, name, writers: 4, graceMs })
  children.push(child)
  return child
}

/** Kills all processes of a folder at random moments, again and again, and examines what they left. */
async function killing(kills: number, processes: number, graceMs: number): Promise<string> {
  const seen = { kills: 0, acknowledged: 0, published: 0, reopened: 0 }
  while (seen.kills < kills) {
    const dir = await newFolder()
    const examination = new Examination(dir)
    const start = (round: number): Child[] =>
      Array.from({ length: processes }, (_, index) => started(dir, `process-${round}-${index}`, graceMs))
    const rounds = Math.min(KILLS_PER_FOLDER, Math.ceil((kills - seen.kills) / processes))
    // The next ones start while the last ones are examined.
    let next = start(0)
    for (let round = 0; round < rounds; round++) {
      const living = next
      await Promise.all(living.map((child) => child.begin()))
      await Promise.all(
        living.map(async (child) => {
          await sleep(LIFE_MS * (0.1 + 0.9 * Math.random()))
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
    await examination.checkProjections(`after ${rounds} rounds in ${dir}`)
  }
  return JSON.stringify(seen)
}

describe('a process that is killed at any moment', { timeout: PATIENCE_MS }, () => {
  test('[I1][I2][I6] loses no acknowledged event, writes none twice, and leaves tables that follow from the ledger', async () => {
    console.log(`one process at a time: ${await killing(KILLS, 1, 50)}`)
  })

  test('[I1][I4][I5] neither do two processes that append, compact and collect garbage in the same folder', async () => {
    console.log(`two processes at a time: ${await killing(Math.ceil(KILLS / 2), 2, 50)}`)
  })
})
