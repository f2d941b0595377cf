import { spawn } from 'node:child_process'
import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { atEnd, end } from './lib/ending.ts'
import { startPostgres } from './lib/postgres.ts'
import { type ProcessUsage, processTree, treeUsage } from './lib/processes.ts'
import { quick, Report } from './lib/report.ts'
import { scratchFolder } from './lib/scratch.ts'
import { Servo } from './lib/servo.ts'
import { builtServo, ServoDev, shop } from './lib/servo-dev.ts'
import { megabytes, number } from './lib/table.ts'

/*
 * What a server costs that has nothing to do: `servo dev` on the shop after everything was run once, beside a
 * graphile-worker that waits for jobs, with its PostgreSQL. An orchestrator in this process, on a store that counts, tells
 * how many requests an idle one makes.
 */
const WATCHED_MS = quick ? 5_000 : 60_000
/** Nothing has changed for so long, workers that linger for a minute included. */
const SETTLED_MS = quick ? 3_000 : 65_000

const report = new Report('idle', `${WATCHED_MS / 1_000} s of nothing to do, after everything has settled`)

/** All files below a folder, as they are now. */
function listing(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => {
    const { size, mtimeMs } = statSync(path.join(folder, name))
    return `${name} ${size} ${mtimeMs}`
  })
}

async function settled(what: () => string): Promise<void> {
  let before = ''
  for (let since = performance.now(); performance.now() - since < SETTLED_MS; await setTimeout(200)) {
    const now = what()
    if (now !== before) since = performance.now()
    before = now
  }
}

async function idleDev(): Promise<{ pid: number; files: () => string[] }> {
  const project = shop()
  const dev = new ServoDev(await builtServo(), project, '--run', '*')
  const { run } = await dev.hears((said) => said.run?.finished_at != null)
  if (run?.state !== 'SUCCEEDED') throw new Error(`the shop's run has ${run?.state}`)
  return { pid: dev.pid, files: () => listing(path.join(project, '.servo')) }
}

/** Its command line, as it is without options but for as many jobs at a time as `servo dev` runs tasks. */
function idleGraphile(url: string): number {
  const folder = scratchFolder('graphile')
  mkdirSync(path.join(folder, 'tasks'))
  writeFileSync(path.join(folder, 'tasks/one.mjs'), 'export default () => undefined\n')
  const program = path.resolve(import.meta.dirname, '../node_modules/graphile-worker/dist/cli.js')
  const child = spawn(process.execPath, [program, '-c', url, '-j', '4'], { cwd: folder, detached: true, stdio: 'ignore' })
  const gone = new Promise((resolve) => child.once('exit', resolve))
  atEnd(async () => {
    child.kill('SIGTERM')
    await gone
  })
  return child.pid as number
}

const postgres = await startPostgres()
const graphile = idleGraphile(postgres.url)
const dev = await idleDev()
const servo = await Servo.open({
  assets: `import { asset } from 'servo-flow'\nexport const one = asset('one', { run: () => 1 })\n`,
})
await servo.run('one')
await settled(() => JSON.stringify([dev.files(), processTree(dev.pid), servo.publishingMs]))

const watched = { 'servo dev': dev.pid, 'graphile-worker': graphile, 'its PostgreSQL': postgres.pid }
const usage = (): ProcessUsage[] => Object.values(watched).map(treeUsage)
const [filesBefore, before] = [dev.files(), usage()]
servo.take()
await setTimeout(WATCHED_MS)
const { requests } = servo.take()
const [filesAfter, after] = [dev.files(), usage()]

const since = (figure: keyof ProcessUsage): number[] =>
  after.map((each, i) => each[figure] - (before[i] as ProcessUsage)[figure])
const perSecond = (counts: readonly number[]): string[] => counts.map((count) => number((count * 1_000) / WATCHED_MS))
report.table('Idle', [
  ['', ...Object.keys(watched)],
  ['processor, of one core', ...since('cpuMs').map((ms) => `${number((100 * ms) / WATCHED_MS)} %`)],
  ['threads woken up per second', ...perSecond(since('wakeUps'))],
  ['reads per second', ...perSecond(since('reads'))],
  ['writes per second', ...perSecond(since('writes'))],
  ['processes', ...after.map((each) => String(each.processes))],
  ['resident', ...after.map((each) => megabytes(each.residentBytes))],
  ['resident, shared pages once', ...after.map((each) => megabytes(each.ownBytes))],
])
const changed = filesAfter.filter((file) => !filesBefore.includes(file)).length
report.note(`An orchestrator asked its store ${requests} times; of the shop's ${filesAfter.length} files ${changed} changed.`)
for (const [i, name] of Object.keys(watched).entries()) report.samples(`${name}: processor`, 'ms', [since('cpuMs')[i] ?? 0])
report.finish()
await end()
