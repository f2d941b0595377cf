import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { WatchFolder } from '../adapters/fs/folder-watch.ts'
import { fsLease } from '../adapters/fs/lease.ts'
import { systemClock } from '../adapters/system/clock.ts'
import type { OpenLease } from './conformance/lease.ts'
import { PausableProcess } from './pausable-process.ts'

/** A busy machine lets a thread wait for some hundred milliseconds; more than half of this is a pause. */
const PERIOD_MS = 1_000

/** Leases in folders on real time, between parts of this process that can be paused. */
export const folderLease =
  (watch: WatchFolder): OpenLease =>
  async () => {
    const dir = mkdtempSync(join(tmpdir(), 'servo-lease-'))
    return {
      periodMs: PERIOD_MS,
      pass: (ms) => sleep(ms),
      close: async () => rmSync(dir, { recursive: true }),
      join() {
        const process = new PausableProcess(systemClock)
        const pausable: WatchFolder = (folder, changed, deaf) =>
          watch(folder, (name) => process.call(() => changed(name)), deaf)
        return {
          lease: fsLease(join(dir, 'lease'), { clock: process.clock, periodMs: PERIOD_MS, watch: pausable }),
          pause: () => process.pause(),
          resume: () => process.resume(),
        }
      },
    }
  }
