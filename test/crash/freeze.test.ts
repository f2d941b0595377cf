import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Child } from './support/child.ts'
import { Examination } from './support/examine.ts'
import { crashFolder, started } from './support/folder.ts'

/** The acceptance asks for 30; each is two processes and a replay, so `npm test` makes do with fewer. */
const FREEZES = Number(process.env['SERVO_FREEZES'] ?? 2)
/** Every takeover adds some fifteen publishes to what the next examination replays. */
const FREEZES_PER_FOLDER = 6
/** Collections run at every third turn and keep two manifests: by now the number of the frozen one is free again. */
const PUBLISHES_PER_TAKEOVER = 5
const LONGEST_WAIT_MS = 80

/** Lets a process live until some moment in the middle of things, and stops it there. */
async function freezeSomewhere(child: Child): Promise<void> {
  const publishes = child.published + Math.floor(Math.random() * 3)
  await child.until(() => child.published >= publishes && child.acknowledged.length > 0)
  await sleep(LONGEST_WAIT_MS * Math.random())
  child.freeze()
}

test('[I4][I5][I6] a process frozen in the middle of anything, overtaken, and woken after its numbers were collected does no harm', {
  timeout: 60_000 + FREEZES * 20_000,
}, async () => {
  const outcomes: Record<string, number> = {}
  for (let freezes = 0; freezes < FREEZES; ) {
    const dir = await crashFolder()
    const examination = new Examination(dir)
    // It ends when it finds itself overtaken, and says why.
    const start = (): Child => started({ dir, name: `process-${freezes}`, writers: 3, graceMs: 0, reopen: false })
    let leader = start()
    await leader.begin()
    await freezeSomewhere(leader)
    for (let round = 0; round < FREEZES_PER_FOLDER && freezes < FREEZES; round++) {
      freezes += 1
      const challenger = start()
      await challenger.begin()
      await challenger.until(() => challenger.published >= PUBLISHES_PER_TAKEOVER)
      leader.thaw()
      await leader.ended
      expect(leader.failure).toBeUndefined()
      // One that never had a version of its own may also be told that its files are gone while it still opens the state.
      if (leader.published > 0) expect(leader.reopened).toEqual(['fenced'])
      expect(['fenced', 'file_missing']).toContain(leader.reopened[0])
      outcomes[leader.reopened[0]!] = (outcomes[leader.reopened[0]!] ?? 0) + 1
      examination.expectAcknowledged(leader.acknowledged)

      await freezeSomewhere(challenger)
      // Stopped like this, the folder looks as it would after a kill.
      await examination.check(`freeze ${freezes} in ${dir}`)
      leader = challenger
    }
    await leader.kill()
    examination.expectAcknowledged(leader.acknowledged)
    await examination.check(`the end of ${dir}`)
    await examination.checkProjections(`the end of ${dir}`)
  }
  console.log(`${FREEZES} freezes: ${JSON.stringify(outcomes)}`)
})
