// A process that claims, holds and releases a lease as it is told: node lease-holder.ts <folder> <period in ms> <witness file>.

import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fsLease } from '../../../src/adapters/fs/lease.ts'
import { systemClock as clock } from '../../../src/adapters/system/clock.ts'
import type { HeldLease } from '../../../src/ports/lease.ts'

const [, , dir = '', period = '', witness = ''] = process.argv
const periodMs = Number(period)
const lease = fsLease(dir, { clock, periodMs })
let held: HeldLease | undefined

/** Written at once, because nothing may be awaited between a look and what is said of it. */
const say = (what: object): void => void writeSync(1, `${JSON.stringify(what)}\n`)

/** Whoever leads has made this file, and removes it before anybody else can lead. */
function testify(): boolean {
  try {
    closeSync(openSync(witness, 'wx'))
    return true
  } catch {
    return false
  }
}

const commands: Record<string, () => Promise<void> | void> = {
  async claim() {
    const answer = await lease.claim({ name: `process-${process.pid}`, term: 'standing' })
    if (!answer.held) return say({ held: false, pid: answer.leader.pid })
    held = answer
    held.onLost(() => say({ lost: true }))
    say({ held: true, number: held.number, isAlone: testify() })
  },
  async release() {
    rmSync(witness)
    await held?.release()
    say({ released: true })
  },
  /** Claims and releases again and again, as fast as it can, until it has led so many times. */
  async churn() {
    for (let terms = 0; terms < 10; ) {
      const answer = await lease.claim({ name: `process-${process.pid}`, term: 'brief' })
      if (!answer.held) continue
      const isAlone = testify()
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 3))
      say({ led: answer.number, isAlone: isAlone && answer.isHeld })
      rmSync(witness)
      await answer.release()
      terms += 1
    }
    say({ churned: true })
  },
  /** Looks without ever letting go of the thread, and tells the first look after the process was stopped. */
  async spin() {
    // On a busy machine it may have been unsure since the last look.
    await held?.confirm()
    // Before it is said: whoever hears of it stops us at once.
    let last = performance.now()
    say({ spinning: held?.isHeld })
    for (;;) {
      // In this order: a look after the pause, not one before it.
      const now = performance.now()
      const isHeld = held?.isHeld
      if (now - last > periodMs / 2) return say({ woken: true, isHeld })
      last = now
    }
  },
  async confirm() {
    say({ confirmed: await held?.confirm() })
  },
}

say({ ready: true })
for await (const command of createInterface(process.stdin)) void commands[command]?.()
