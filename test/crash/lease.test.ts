import { type ChildProcess, spawn } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { fsLease } from '../../src/adapters/fs/lease.ts'
import { systemClock as clock } from '../../src/adapters/system/clock.ts'
import { crashFolder } from './support/folder.ts'

/** The acceptance asks for 200 and 100. Each round starts a process, so `npm test` makes do with fewer. */
const ROUNDS = Number(process.env['SERVO_LEASE_ROUNDS'] ?? 8)
const STOPS = Number(process.env['SERVO_LEASE_STOPS'] ?? 2)
const RACERS = 4
/** So long that no round waits for it: whoever is replaced here was proven dead. */
const LONG_MS = 60_000
const SHORT_MS = 1_000

interface Said {
  readonly held?: boolean
  readonly isHeld?: boolean
  readonly isAlone?: boolean
  readonly number?: number
  readonly led?: number
  readonly pid?: number
  readonly [word: string]: unknown
}

class Holder {
  readonly said: Said[] = []
  readonly ended: Promise<void>
  readonly #process: ChildProcess
  #listeners: (() => void)[] = []

  constructor(dir: string, periodMs: number) {
    const program = join(import.meta.dirname, 'support/lease-holder.ts')
    const args = [program, join(dir, 'lease'), String(periodMs), join(dir, 'witness')]
    this.#process = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#process.stdin!.on('error', () => undefined)
    this.ended = new Promise((resolve) => this.#process.once('close', () => resolve()))
    let rest = ''
    this.#process.stdout!.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n')
      rest = lines.pop()!
      for (const line of lines) this.said.push(JSON.parse(line) as Said)
      for (const listener of this.#listeners.splice(0)) listener()
    })
    onTestFinished(() => void this.signal('SIGKILL'))
  }

  get pid(): number {
    return this.#process.pid!
  }

  tell(command: string): void {
    this.#process.stdin!.write(`${command}\n`)
  }

  signal(signal: NodeJS.Signals): void {
    this.#process.kill(signal)
  }

  async kill(): Promise<void> {
    this.signal('SIGKILL')
    await this.ended
  }

  /** The first thing from the `from`th on that says this word. */
  async says(word: string, from = 0): Promise<Said> {
    for (;;) {
      const found = this.said.slice(from).find((said) => word in said)
      if (found !== undefined) return found
      await new Promise<void>((resolve) => this.#listeners.push(resolve))
    }
  }

  /** Tells it, and waits for an answer with this word. */
  async ask(command: string, word: string): Promise<Said> {
    const from = this.said.length
    this.tell(command)
    return await this.says(word, from)
  }
}

async function started(dir: string, count: number, periodMs: number): Promise<Holder[]> {
  const holders = Array.from({ length: count }, () => new Holder(dir, periodMs))
  await Promise.all(holders.map((holder) => holder.says('ready')))
  return holders
}

test('[E1][E3] of processes that race for a lease whose holder was killed, one gets it at once, and the others learn who', {
  timeout: 60_000 + ROUNDS * 5_000,
}, async () => {
  const dir = await crashFolder()
  const racers = await started(dir, RACERS, LONG_MS)
  const winners = new Set<number>()
  for (let round = 1; round <= ROUNDS; round++) {
    const answers = await Promise.all(racers.map((racer) => racer.ask('claim', 'held')))
    const winner = racers[answers.findIndex(({ held }) => held)]!
    expect(
      answers.filter(({ held }) => held),
      `round ${round}`,
    ).toEqual([{ held: true, number: round, isAlone: true }])
    for (const { held, pid } of answers) if (!held) expect(pid).toBe(winner.pid)
    winners.add(racers.indexOf(winner))
    // A released lease is raced for like one whose holder is dead.
    if (round % 4 === 0) await winner.ask('release', 'released')
    else {
      const [next] = await started(dir, 1, LONG_MS)
      await winner.kill()
      rmSync(join(dir, 'witness'))
      racers.splice(racers.indexOf(winner), 1, next!)
    }
  }
  expect(winners.size, 'it was a race').toBeGreaterThan(1)
})

test('[E1] processes that claim and release as fast as they can never lead together', { timeout: 120_000 }, async () => {
  const dir = await crashFolder()
  const racers = await started(dir, RACERS, LONG_MS)
  await Promise.all(racers.map((racer) => racer.ask('churn', 'churned')))
  const terms = racers.flatMap(({ said }) => said.filter(({ led }) => led !== undefined))
  expect(terms.filter(({ isAlone }) => !isAlone)).toEqual([])
  expect(terms.map(({ led }) => led).sort((a, b) => a! - b!)).toEqual(Array.from({ length: 10 * RACERS }, (_, i) => i + 1))
})

test('[E4][E5] a holder that was stopped is replaced after the period, and knows it at its first look', {
  timeout: 60_000 + STOPS * 5_000,
}, async () => {
  const dir = await crashFolder()
  let [holder] = (await started(dir, 1, SHORT_MS)) as [Holder]
  await holder.ask('claim', 'held')
  for (let stop = 1; stop <= STOPS; stop++) {
    const [next] = (await started(dir, 1, SHORT_MS)) as [Holder]
    // One that looks all the time, and one that waits for something to happen.
    if (stop % 2 === 0) expect(await holder.ask('spin', 'spinning')).toEqual({ spinning: true })
    holder.signal('SIGSTOP')
    rmSync(join(dir, 'witness'))
    const since = performance.now()
    expect(await next.ask('claim', 'held')).toEqual({ held: true, number: stop + 1, isAlone: true })
    expect(performance.now() - since).toBeGreaterThanOrEqual(SHORT_MS)
    holder.signal('SIGCONT')
    if (stop % 2 === 0) expect(await holder.says('woken')).toEqual({ woken: true, isHeld: false })
    await holder.says('lost')
    expect(await holder.ask('confirm', 'confirmed')).toEqual({ confirmed: false })
    await holder.kill()
    holder = next
  }
})

test('[E4] a holder that is stopped for less than the period keeps the lease', async () => {
  const dir = await crashFolder()
  const [holder, other] = (await started(dir, 2, 4 * SHORT_MS)) as [Holder, Holder]
  await holder.ask('claim', 'held')
  holder.signal('SIGSTOP')
  const answer = other.ask('claim', 'held')
  await sleep(SHORT_MS)
  holder.signal('SIGCONT')
  expect(await answer).toEqual({ held: false, pid: holder.pid })
  expect(await holder.ask('confirm', 'confirmed')).toEqual({ confirmed: true })
})

test('[E3] nobody leads once the leader was killed, and this process takes over without waiting', async () => {
  const dir = await crashFolder()
  const [holder] = (await started(dir, 1, LONG_MS)) as [Holder]
  const lease = fsLease(join(dir, 'lease'), { clock, periodMs: LONG_MS })
  await holder.ask('claim', 'held')
  expect(await lease.leader()).toMatchObject({ pid: holder.pid, number: 1 })
  await holder.kill()
  expect(await lease.leader()).toBeUndefined()
  expect(await lease.claim({ name: 'next', term: 'standing' })).toMatchObject({ held: true, number: 2 })
})
