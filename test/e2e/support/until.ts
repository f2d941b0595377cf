import { setTimeout as sleep } from 'node:timers/promises'

/** Long enough for a machine that does ten other things; only what hangs takes it. */
const HANG_MS = 60_000

/** Between two looks: soon at first, and then a tenth of what was waited so far. To look may be a request to a server. */
const LOOK_MS = { soonest: 10, latest: 100 }

/** Waits for a condition. */
export async function until(check: () => boolean | Promise<boolean>, what = String(check)): Promise<void> {
  const began = performance.now()
  while (!(await check())) {
    const waited = performance.now() - began
    if (waited > HANG_MS) throw new Error(`waited ${HANG_MS / 1_000} s for ${what}`)
    await sleep(Math.min(LOOK_MS.latest, Math.max(LOOK_MS.soonest, waited / 10)))
  }
}
