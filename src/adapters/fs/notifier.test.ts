import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { systemClock as clock } from '../../adapters/system/clock.ts'
import { utcDay } from '../../lib/time.ts'
import { ulidFloor, ulidTime } from '../../lib/ulid.ts'
import type { Listening } from '../../ports/notifier.ts'
import { notifierConformance } from '../../testing/conformance/notifier.ts'
import { VirtualClock } from '../../testing/virtual-clock.ts'
import { type WatchFolder, watchFolder } from './folder-watch.ts'
import { type FsNotifierOptions, fsNotifier } from './notifier.ts'
import { fsStore } from './object-store.ts'

const pathOf = (segment: string): string => `ledger/${utcDay(ulidTime(segment))}/${segment}.json`

notifierConformance('a notifier over a folder', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'servo-notifier-'))
  const store = fsStore(dir)
  return {
    join: () => fsNotifier(join(dir, 'ledger'), { clock }),
    write: async (segment) => void (await store.create(pathOf(segment), Buffer.from(segment))),
    async close() {
      await store.close()
      rmSync(dir, { recursive: true })
    },
  }
})

describe('a notifier over a folder', () => {
  const DAY_MS = 86_400_000
  const today = Date.UTC(2026, 0, 10)
  const segment = (days: number, number = 0): string =>
    ulidFloor(today + days * DAY_MS).slice(0, 20) + String(number).padStart(6, '0')

  async function world(options: Partial<FsNotifierOptions> = {}, before: readonly string[] = []) {
    const dir = mkdtempSync(join(tmpdir(), 'servo-notifier-'))
    const store = fsStore(dir)
    const write = async (ulid: string): Promise<unknown> => await store.create(pathOf(ulid), Buffer.from(ulid))
    for (const ulid of before) await write(ulid)
    const told = { calls: 0, missed: 0, heard: new Set<string>() }
    const listening: Listening = await fsNotifier(join(dir, 'ledger'), { clock, ...options }).listen({
      onSegments(segments) {
        told.calls += 1
        for (const each of segments) told.heard.add(each)
      },
      onMissed: () => void told.missed++,
    })
    onTestFinished(async () => {
      listening.close()
      await store.close()
      rmSync(dir, { recursive: true })
    })
    return { dir, ledger: join(dir, 'ledger'), write, told, listening }
  }

  test('hears of segments in days that are there, however old, and in days that appear', async () => {
    const old = Array.from({ length: 40 }, (_, i) => segment(-10 * i))
    const { write, told, listening } = await world({}, old)
    expect(listening.missesNothing).toBe(true)
    const segments = [segment(-390, 1), segment(0, 1), segment(1), segment(400), segment(-5), segment(-5, 1)]
    for (const each of segments) await write(each)
    await expect.poll(() => [...told.heard].sort()).toEqual(segments.sort())
    expect(told.missed).toBe(0)
    expect(listening.missesNothing).toBe(true)
  })

  test('hears of everything when new days fill as fast as they appear', async () => {
    const { write, told } = await world()
    const segments = Array.from({ length: 60 }, (_, i) => segment(i % 20, i))
    await Promise.all(segments.map(write))
    await expect.poll(() => told.heard.size).toBe(segments.length)
  })

  test('hears of a day that was removed, or moved away, and made again', async () => {
    const { ledger, write, told } = await world({}, [segment(0)])
    const day = join(ledger, utcDay(today))
    renameSync(day, join(ledger, 'moved'))
    mkdirSync(day)
    writeFileSync(join(day, `${segment(0, 1)}.json`), '')
    await expect.poll(() => [...told.heard]).toEqual([segment(0, 1)])
    await write(segment(0, 2))
    await expect.poll(() => told.heard.size).toBe(2)
  })

  test('ignores files that are not segments', async () => {
    const { ledger, told, write } = await world({}, [segment(0)])
    writeFileSync(join(ledger, utcDay(today), 'notes.json'), '')
    writeFileSync(join(ledger, utcDay(today), '.hidden'), '')
    mkdirSync(join(ledger, 'archive'))
    await write(segment(0, 1))
    await expect.poll(() => told.heard.size).toBe(1)
    expect(told.calls).toBe(1)
  })

  test('a segment of our own costs one event', async () => {
    let events = 0
    const counted: WatchFolder = (folder, changed, deaf) =>
      watchFolder(
        folder,
        (name) => {
          events += 1
          changed(name)
        },
        deaf,
      )
    const { write, told } = await world({ watch: counted }, [segment(0)])
    for (let i = 1; i <= 50; i++) await write(segment(0, i))
    await expect.poll(() => told.heard.size).toBe(50)
    expect(events).toBe(50)
  })

  test('says that it may have missed something when a watch breaks, and hears again later', async () => {
    const clock = new VirtualClock()
    const breaks: (() => void)[] = []
    const breakable: WatchFolder = (folder, changed, deaf) => {
      breaks.push(deaf)
      return watchFolder(folder, changed, deaf)
    }
    const { write, told, listening } = await world({ clock, watch: breakable }, [segment(0)])
    breaks.at(-1)?.()
    expect(listening.missesNothing).toBe(false)
    expect(told.missed).toBe(1)
    await write(segment(0, 1))
    await clock.advance(10_000)
    // Whatever was written meanwhile is found by looking.
    expect(listening.missesNothing).toBe(true)
    expect(told.missed).toBe(2)
    await write(segment(0, 2))
    await expect.poll(() => [...told.heard]).toEqual([segment(0, 2)])
  })

  test('does not claim to hear everything where it cannot watch, or shall not', async () => {
    const { told, listening } = await world({ clock: new VirtualClock(), watch: () => undefined })
    expect(listening.missesNothing).toBe(false)
    expect(told.missed).toBe(1)
    expect((await world({ watch: 'off' })).listening.missesNothing).toBe(false)
  })
})
