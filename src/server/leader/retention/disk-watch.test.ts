import { expect, test } from 'vitest'
import { roomOn } from '../../../adapters/system/disk-room.ts'
import { MINUTE_MS } from '../../../lib/time.ts'
import { VirtualClock } from '../../../testing/virtual-clock.ts'
import { DiskWatch } from './disk-watch.ts'

test('[K6] a server says once that the disk runs full, with figures and what to do, and again only after there was enough room', async () => {
  const clock = new VirtualClock()
  const said: string[] = []
  let free = 50
  let asked = 0
  const room = async () => {
    asked += 1
    return roomOn('/shop', { bsize: 1_000_000_000, blocks: 100, bavail: free })
  }
  const watch = new DiskWatch(clock, room, ({ message, hint }) => said.push(`${message}. ${hint}`))
  watch.start()
  await clock.advance(5 * MINUTE_MS)
  expect([said, asked]).toEqual([[], 6])
  free = 4
  await clock.advance(5 * MINUTE_MS)
  expect(said).toEqual([
    expect.stringMatching(
      /^the disk is nearly full: 4\.0 GB free \(4 %\) on the disk of \/shop\. Free some space.*servo gc --dry-run/,
    ),
  ])
  free = 0
  await clock.advance(MINUTE_MS)
  expect(said[1]).toContain('0 KB free (0 %)')
  free = 50
  await clock.advance(MINUTE_MS)
  free = 4
  await clock.advance(MINUTE_MS)
  expect(said.length).toBe(3)
  watch.stop()
  await clock.advance(5 * MINUTE_MS)
  expect(asked).toBe(14)
})
