import { expect, test } from 'vitest'
import type { StoreRequest } from '../../../src/testing/counting-store.ts'
import { isFaultTried } from '../../tried-faults.ts'
import { Keeping, keep } from './keeping.ts'

const assets = [
  { asset_key: 'a', ...keep(1) },
  { asset_key: 'b', ...keep(2) },
]

/** A project of which three values are to be removed, and a server that is killed at a request of the pass that removes them. */
async function killedAt(request: number) {
  const world = await Keeping.open(assets, (_, made) => ({ inline: made % 5 === 0 }))
  for (let i = 0; i < 3; i++) await world.make('*')
  await world.server.close()
  world.clock.jump(20 * 60_000)
  let seen = 0
  let wake = (): void => undefined
  let killed: StoreRequest | undefined
  const asleep = new Promise<void>((resolve) => {
    wake = resolve
  })
  let isStarted = false
  await world.start(assets, async (asked) => {
    if (!isStarted || killed !== undefined) return killed && asleep
    seen += 1
    if (seen !== request) return
    killed = asked
    await asleep
  })
  isStarted = true
  await world.wait(3)
  return { world, killed, wake }
}

test('[K4] a server that is killed at any request of a pass has deleted no file that is not on record as removed, and the next one finishes', async () => {
  const { world: calm, killed: none } = await killedAt(0)
  expect(none).toBeUndefined()
  const left = await calm.files()
  expect(left.length).toBeLessThan(6)
  for (let request = 1; ; request++) {
    if (request > 1 && !isFaultTried()) continue
    const { world, killed, wake } = await killedAt(request)
    if (killed === undefined) break
    const name = `killed at request ${request}: ${killed.method} ${killed.path}`
    await world.start(assets)
    expect((await world.checked()).problems, name).toEqual([])
    await world.wait(3)
    expect(await world.files(), name).toEqual(left)
    // The other was only frozen: it wakes up, and finds that it does not lead.
    wake()
    await world.wait(3)
    expect(await world.files(), `${name}, and woken`).toEqual(left)
    expect(await world.checked(), name).toMatchObject({ problems: [], values: { not_deleted: 0 } })
  }
})
