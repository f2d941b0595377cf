import { setTimeout as sleep } from 'node:timers/promises'

/** Long enough for a machine that does ten other things; only what hangs takes it. */
const HANG_MS = 60_000

/** Waits for a condition. */
export async function until(check: () => boolean | Promise<boolean>, what = String(check)): Promise<void> {
  const end = performance.now() + HANG_MS
  while (!(await check())) {
    if (performance.now() > end) throw new Error(`waited ${HANG_MS / 1_000} s for ${what}`)
    await sleep(20)
  }
}
