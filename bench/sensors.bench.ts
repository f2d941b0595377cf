import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { systemClock } from '../src/adapters/system/clock.ts'
import { projectManifest } from '../src/contract/project-manifest.ts'
import { Paths } from '../src/engine/paths.ts'
import { MINUTE_MS, SECOND_MS } from '../src/lib/time.ts'
import type { Notifier } from '../src/ports/notifier.ts'
import { loadSecrets } from '../src/server/leader/load-secrets.ts'
import { Server } from '../src/server/server.ts'
import { memoryComponents } from '../src/testing/memory-components.ts'
import { ScriptedLease } from '../src/testing/scripted-lease.ts'
import { ScriptedWorkers } from '../src/testing/scripted-workers.ts'
import { VirtualClock } from '../src/testing/virtual-clock.ts'
import { end } from './lib/ending.ts'
import { meteredStore } from './lib/metered-store.ts'
import { treeUsage } from './lib/processes.ts'
import { rawDisk } from './lib/raw-disk.ts'
import { quick, Report } from './lib/report.ts'
import { scratchFolder } from './lib/scratch.ts'
import { builtServo, ServoDev } from './lib/servo-dev.ts'
import { median, quantile } from './lib/stats.ts'
import { milliseconds, number, ratio } from './lib/table.ts'

/*
 * What sensors cost: how long the sender of a webhook waits for its answer, which is given when the evaluation is durable, and what a
 * server writes while its polls find nothing. The webhooks come at a steady rate over HTTP to `servo dev`, whose worker processes
 * evaluate them. Beside them stand durable files of the size of such a segment, made at the same rate with nothing but system calls.
 */
const A_SECOND = 100
const ROUNDS = quick ? 1 : 4
const ROUND_SECONDS = quick ? 1 : 5
const SEGMENT = Buffer.alloc(1_500, '.')
const SCHEDULES = 1_000
const POLLS = 100

const report = new Report(
  'sensors',
  `webhooks at ${A_SECOND} a second; ${SCHEDULES} schedules and ${POLLS} polls with nothing to do`,
)

/** Does something so many times a second. Returns how long each took, from the moment that it should have begun. */
async function atARate(what: () => Promise<unknown>): Promise<number[]> {
  const began = performance.now()
  const going: Promise<number>[] = []
  for (let i = 0; i < A_SECOND * ROUND_SECONDS; i++) {
    const due = began + (i * SECOND_MS) / A_SECOND
    if (due > performance.now()) await setTimeout(due - performance.now())
    going.push(what().then(() => performance.now() - due))
  }
  return await Promise.all(going)
}

function projectOfHooks(): string {
  const folder = scratchFolder('hooks')
  mkdirSync(path.join(folder, 'assets'))
  symlinkSync(path.resolve(import.meta.dirname, '../node_modules'), path.join(folder, 'node_modules'))
  const config = `import { defineConfig } from 'servo-flow'\nexport default defineConfig({ project: 'bench', dirs: ['assets'] })\n`
  writeFileSync(path.join(folder, 'servo.config.ts'), config)
  const assets = `import { asset, sensor, webhook } from 'servo-flow'
import { z } from 'zod'
export const one = asset('one', { run: () => 1 })
const from = (path) => webhook({ path, verify: 'none', schema: z.object({ order: z.number() }) })
export const noted = sensor.push('noted', { source: from('noted'), on: () => undefined })
export const asks = sensor.push('asks', { source: from('asks'), on: ({ id }) => ({ assetKey: 'one', runKey: id }) })
`
  writeFileSync(path.join(folder, 'assets/bench.ts'), assets)
  return folder
}

async function webhooks(): Promise<void> {
  const dev = new ServoDev(await builtServo(), projectOfHooks())
  const ready = await dev.hears(({ type }) => type === 'ready')
  if (ready.ok !== true) throw new Error(JSON.stringify(ready))
  let sent = 0
  const send = async (sensor: string): Promise<void> => {
    const response = await fetch(`${ready.url}/hooks/default/default/${sensor}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-message-id': `m${sent++}` },
      body: JSON.stringify({ order: sent }),
    })
    const answer = await response.text()
    if (response.status !== 200) throw new Error(`${response.status} ${answer}`)
  }
  const disk = rawDisk(scratchFolder('raw'))
  const took: Record<string, number[]> = { noted: [], asks: [], disk: [] }
  const cpu: Record<string, number[]> = { noted: [], asks: [] }
  for (const sensor of ['noted', 'asks']) for (let i = 0; i < 50; i++) await send(sensor)
  for (let round = 0; round < ROUNDS; round++) {
    for (const sensor of ['noted', 'asks']) {
      const before = treeUsage(dev.pid).cpuMs
      took[sensor]?.push(...(await atARate(() => send(sensor))))
      cpu[sensor]?.push((treeUsage(dev.pid).cpuMs - before) / (A_SECOND * ROUND_SECONDS))
      await systemClock.sleep(2_000)
    }
    took['disk']?.push(...(await atARate(() => disk.create(SEGMENT))))
  }
  disk.close()
  await dev.stop()
  const [file = []] = [took['disk']]
  const names = { noted: 'evaluation that asks for nothing', asks: 'evaluation that asks for a run, which is run meanwhile' }
  report.table(`A webhook, from the request to the answer, ${A_SECOND} a second`, [
    ['', 'p50', 'p95', 'p99', 'computing for each', 'p95 : durable file'],
    ...Object.entries(names).map(([sensor, name]) => {
      const times = took[sensor] ?? []
      const p95 = quantile(times, 0.95)
      report.samples(name, 'ms', times)
      const [p50, p99, each] = [median(times), quantile(times, 0.99), median(cpu[sensor] ?? [])]
      return [name, ...[p50, p95, p99, each].map(milliseconds), ratio(p95 / quantile(file, 0.95))]
    }),
    ['a durable file of 1.5 kB', ...[0.5, 0.95, 0.99].map((share) => milliseconds(quantile(file, share))), '', ''],
  ])
  report.samples('durable file', 'ms', file)
}

/** What a server asks of its store while nothing is due and no poll finds anything, on virtual time. */
async function idle(name: string, declared: { readonly schedules: number; readonly polls: number }, minutes: number) {
  const clock = new VirtualClock(Date.UTC(2025, 0, 15, 10, 10))
  const memory = memoryComponents(clock)
  const store = meteredStore(memory.store)
  // As on a folder, whose watch misses nothing: nobody else writes here.
  const notifier: Notifier = {
    announce: () => undefined,
    listen: async () => ({ missesNothing: true, close: () => undefined }),
  }
  const components = { ...memory, store, notifier }
  const { secrets } = await loadSecrets(components)
  let polls = 0
  const server = await Server.open({
    components,
    lease: new ScriptedLease(),
    secrets,
    instance: 'bench',
    workers: new ScriptedWorkers(clock),
    concurrency: () => 8,
    automation: true,
    evaluator: {
      evaluate: async () => {
        polls += 1
        return { outcome: 'requests', runs: [] }
      },
    },
    onTrouble: (error) => console.error(error),
  })
  await server.define(
    projectManifest.parse({
      project: 'bench',
      assets: [{ asset_key: 'one', kind: 'asset' }],
      schedules: Array.from({ length: declared.schedules }, (_, i) => ({
        ...{ name: `s${i}`, cron_expressions: ['0 * * * *'], asset_selection: ['one'] },
      })),
      sensors: Array.from({ length: declared.polls }, (_, i) => ({
        name: `p${i}`,
        config: { type: 'poll', every_ms: MINUTE_MS },
      })),
    }),
  )
  // What the declarations wrote is published and merged.
  await clock.advance(20 * MINUTE_MS)
  store.take()
  polls = 0
  await clock.advance(minutes * MINUTE_MS)
  const { written, requests } = store.take()
  await server.orchestrator.close()
  const ledger = new Paths(memory.scope).ledger
  const segments = written.filter((object) => object.path.startsWith(ledger)).length
  const counts = [minutes, polls, segments, written.length - segments, requests, written.length / minutes]
  return [name, ...counts.map(number)]
}

report.table('Idle: what a server asks of its store', [
  ['', 'minutes', 'polls', 'segments', 'other objects written', 'requests in all', 'writes a minute'],
  await idle(`${SCHEDULES} hourly schedules`, { schedules: SCHEDULES, polls: 0 }, 25),
  await idle(`the same and ${POLLS} polls of a minute`, { schedules: SCHEDULES, polls: POLLS }, 25),
  await idle(`${POLLS} polls of a minute, for longer`, { schedules: 0, polls: POLLS }, quick ? 25 : 240),
])
await webhooks()
report.finish()
await end()
