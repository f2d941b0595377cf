import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { bareServer } from './lib/bare-http.ts'
import { end } from './lib/ending.ts'
import { Asker, requestOf } from './lib/http-load.ts'
import { treeCpuMs } from './lib/processes.ts'
import { quick, Report } from './lib/report.ts'
import { scratchFolder } from './lib/scratch.ts'
import { builtServo, ServoDev } from './lib/servo-dev.ts'
import { median, quantile } from './lib/stats.ts'
import { number, ratio } from './lib/table.ts'

/*
 * What the API costs: a thousand clients that each ask once a second how a run is going, while fifty runs a second are requested; then
 * as many answers as one connection after the other can get, beside a bare node:http server that sends the same bytes. Rounds of
 * both take turns, so that a noisy neighbour disturbs them alike.
 */
const CLIENTS = quick ? 100 : 1_000
const TRIGGERS_PER_SECOND = quick ? 5 : 50
const POLLED_MS = quick ? 5_000 : 60_000
const ROUNDS = quick ? 2 : 7
const ROUND_MS = quick ? 500 : 2_000
/** As many as keep a server busy all the time. */
const CONNECTIONS = 32
const API = '/api/v1/orchestration'

const report = new Report('api', `${CLIENTS} clients, ${TRIGGERS_PER_SECOND} triggers a second, ${POLLED_MS / 1_000} s`)

const project = scratchFolder('api')
mkdirSync(path.join(project, 'assets'))
symlinkSync(path.resolve(import.meta.dirname, '../node_modules'), path.join(project, 'node_modules'))
writeFileSync(
  path.join(project, 'servo.config.ts'),
  `import { defineConfig } from 'servo-flow'
export default defineConfig({ project: 'api', dirs: ['assets'], server: { limits: { requestsPerSecond: 1_000_000 } } })\n`,
)
writeFileSync(
  path.join(project, 'assets/one.ts'),
  `import { asset } from 'servo-flow'\nexport const one = asset('one', { run: () => 1 })
export const long = asset('long', { run: () => new Promise((done) => setTimeout(done, 3_600_000)) })\n`,
)

const dev = new ServoDev(await builtServo(), project)
const { url = '' } = await dev.hears((said) => said.type === 'ready')
const port = Number(new URL(url).port)
const { api_token: machineToken } = JSON.parse(readFileSync(path.join(project, '.servo/local/secrets.json'), 'utf8'))
const asAdmin = { authorization: `Bearer ${machineToken}`, 'content-type': 'application/json' }

async function post(at: string, body: object) {
  const answer = await fetch(`${url}${API}${at}`, { method: 'POST', headers: asAdmin, body: JSON.stringify(body) })
  return (await answer.json()) as { token: string; run_id: string }
}

/** How often the server was how late, by the bounds of its histogram. */
async function lags(): Promise<Map<number, number>> {
  const text = await (await fetch(`${url}/metrics`, { headers: asAdmin })).text()
  const found = text.matchAll(/^servo_event_loop_lag_seconds_bucket\{le="([^"]+)"\} (\d+)/gm)
  return new Map(
    [...found].map(([, bound, count]) => [bound === '+Inf' ? Number.POSITIVE_INFINITY : Number(bound), Number(count)]),
  )
}

const { token } = await post('/tokens', { name: 'bench', role: 'operator' })
const { run_id: first } = await post('/runs', { select: ['one'] })
await dev.hears((said) => said.run?.finished_at != null)

const runs = [first]
const statuses = new Map<number, number>()
const count = (status: number): void => void statuses.set(status, (statuses.get(status) ?? 0) + 1)
const pollMs: number[] = []
const triggerMs: number[] = []

/** Asks once a second, however long the answer takes. */
async function poll(asker: Asker, client: number): Promise<void> {
  await sleep((client * 1_000) / CLIENTS)
  const until = performance.now() + POLLED_MS
  for (let next = performance.now(); next < until; next += 1_000) {
    await sleep(Math.max(0, next - performance.now()))
    const run = runs.at(-1 - (client % Math.min(runs.length, CLIENTS)))
    const start = performance.now()
    count(await asker.ask(requestOf('GET', `${API}/runs/${run}`, { port, token })))
    pollMs.push(performance.now() - start)
  }
}

async function trigger(): Promise<void> {
  const until = performance.now() + POLLED_MS
  const asked: Promise<void>[] = []
  for (let n = 0, next = performance.now(); next < until; n++, next += 1_000 / TRIGGERS_PER_SECOND) {
    await sleep(Math.max(0, next - performance.now()))
    const start = performance.now()
    asked.push(
      fetch(`${url}${API}/runs`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ select: ['one'], key: `bench-${n}` }),
      }).then(async (answer) => {
        count(answer.status)
        const { run_id } = (await answer.json()) as { run_id?: string }
        if (run_id !== undefined) runs.push(run_id)
        triggerMs.push(performance.now() - start)
      }),
    )
  }
  await Promise.all(asked)
}

const askers = Array.from({ length: CLIENTS }, () => new Asker(port))
const [before, cpuBefore] = [await lags(), treeCpuMs(dev.pid)]
await Promise.all([...askers.map((asker, client) => poll(asker, client)), trigger()])
const [after, cpuAfter] = [await lags(), treeCpuMs(dev.pid)]
for (const asker of askers) asker.close()

const late = [...after].map(([bound, so]) => [bound, so - (before.get(bound) ?? 0)] as const)
const total = late.at(-1)?.[1] ?? 0
const p99 = late.find(([, so]) => so >= 0.99 * total)?.[0] ?? Number.POSITIVE_INFINITY
const errors = [...statuses].filter(([status]) => status >= 300).map(([status, times]) => `${times} × ${status}`)
report.table('A thousand clients', [
  ['', 'requests', 'median', 'p99', 'slowest'],
  ...[['how is a run going', pollMs] as const, ['run something', triggerMs] as const].map(([what, ms]) => [
    what,
    number(ms.length),
    `${number(median(ms))} ms`,
    `${number(quantile(ms, 0.99))} ms`,
    `${number(quantile(ms, 1))} ms`,
  ]),
])
report.note(
  `Errors: ${errors.length === 0 ? 'none' : errors.join(', ')}. Loop lag p99 at most ${number(p99 * 1_000)} ms, of ${total} looks. Processor, with workers: ${number(((cpuAfter - cpuBefore) * 100) / POLLED_MS)} % of one core.`,
)
report.samples('poll', 'ms', pollMs)
report.samples('trigger', 'ms', triggerMs)

// One that is under way, as those are that somebody waits for.
const { run_id: watched } = await post('/runs', { select: ['long'] })
const answered = await fetch(`${url}${API}/runs/${watched}`, { headers: asAdmin })
const bare = await bareServer(await answered.text())

/** Answers a second, and processor time of the server for each. */
async function round(at: number, pid: number): Promise<{ perSecond: number; cpuUs: number }> {
  const request = requestOf('GET', `${API}/runs/${watched}`, { port: at, token })
  const all = Array.from({ length: CONNECTIONS }, () => new Asker(at))
  const [start, cpu] = [performance.now(), treeCpuMs(pid)]
  const counts = await Promise.all(
    all.map(async (asker) => {
      for (let n = 0; ; n++) {
        if (performance.now() - start > ROUND_MS) return n
        const status = await asker.ask(request)
        if (status !== 200) throw new Error(`answered with ${status}`)
      }
    }),
  )
  const [ms, cpuMs] = [performance.now() - start, treeCpuMs(pid) - cpu]
  for (const asker of all) asker.close()
  const answers = counts.reduce((sum, each) => sum + each, 0)
  return { perSecond: (answers * 1_000) / ms, cpuUs: (cpuMs * 1_000) / answers }
}

const servers = { 'servo dev': [port, dev.pid], 'bare node:http': [bare.port, bare.pid] } as const
const speeds: Record<string, { perSecond: number; cpuUs: number }[]> = { 'servo dev': [], 'bare node:http': [] }
for (let i = 0; i <= ROUNDS; i++)
  for (const [name, [at, pid]] of Object.entries(servers)) {
    const speed = await round(at, pid)
    // The first round runs in the interpreter.
    if (i > 0) speeds[name]?.push(speed)
  }
const [ours, theirs] = Object.values(speeds).map((all) => ({
  perSecond: median(all.map(({ perSecond }) => perSecond)),
  cpuUs: median(all.map(({ cpuUs }) => cpuUs)),
}))
report.table('How is a run going, as often as it can be answered', [
  ['', 'answers per second', 'processor per answer'],
  ['servo dev', number(ours?.perSecond ?? 0), `${number(ours?.cpuUs ?? 0)} µs`],
  ['bare node:http', number(theirs?.perSecond ?? 0), `${number(theirs?.cpuUs ?? 0)} µs`],
  [
    'servo dev : bare',
    ratio((ours?.perSecond ?? 0) / (theirs?.perSecond ?? 1)),
    ratio((ours?.cpuUs ?? 0) / (theirs?.cpuUs ?? 1)),
  ],
])
for (const [name, all] of Object.entries(speeds))
  report.samples(
    `${name}: answers`,
    '1/s',
    all.map(({ perSecond }) => perSecond),
  )
report.finish()
await end()
