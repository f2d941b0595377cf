import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { end } from './lib/ending.ts'
import { processesOf } from './lib/processes.ts'
import { quick, Report } from './lib/report.ts'
import { builtServo, ServoDev, shop } from './lib/servo-dev.ts'
import { median, sum } from './lib/stats.ts'
import { milliseconds, ratio } from './lib/table.ts'

/*
 * What a person waits for in front of `servo dev`: until it is ready, until a saved file is loaded, until Ctrl-C has ended
 * it; and for a command: the shortest there is, and a run of an asset that does nothing beside a server. And what a server
 * leaves behind, idle or in the middle of a task that would take ten more minutes. Beside it, a Node that does nothing.
 */
const ROUNDS = quick ? 2 : 10
const SLOW = `import { command } from 'servo-flow'\nexport const slow = command('slow', { run: ['sleep', '600'] })\n`
const NOTHING = `import { asset } from 'servo-flow'\nexport const nothing = asset('nothing', { run: () => undefined })\n`
/** Workers that outlive their server notice it; what is there after this is there for good. */
const NOTICED_MS = 2_000
const SETTLED_MS = 1_000

const report = new Report('start', `servo dev on the shop, ${ROUNDS} rounds`)
const main = await builtServo()
const times = new Map<string, number[]>()
const codes: (number | null)[] = []
const leftAtOnce: number[] = []
const leftForGood: number[] = []

async function timed<T>(what: string, work: () => T | Promise<T>): Promise<T> {
  const start = performance.now()
  const result = await work()
  times.set(what, [...(times.get(what) ?? []), performance.now() - start])
  return result
}

const started = (what: string, project: string, ...args: string[]): Promise<ServoDev> =>
  timed(what, async () => {
    const dev = new ServoDev(main, project, ...args)
    await dev.hears(({ type, ok }) => type === 'ready' && ok === true)
    return dev
  })

async function stopped(what: string, dev: ServoDev, project: string): Promise<void> {
  codes.push(await timed(what, () => dev.stop()))
  leftAtOnce.push(processesOf(project).length)
  const noticed = performance.now() + NOTICED_MS
  while (processesOf(project).length > 0 && performance.now() < noticed) await setTimeout(50)
  const left = processesOf(project)
  leftForGood.push(left.length)
  for (const pid of left) process.kill(pid, 'SIGKILL')
}

async function save(dev: ServoDev, project: string, round: number): Promise<void> {
  const file = path.join(project, 'assets/marts.ts')
  const text = readFileSync(file, 'utf8').replace(/Revenue per region[^'.]*\.'/, `Revenue per region, ${round}.'`)
  dev.forget()
  await timed('save → loaded', async () => {
    writeFileSync(file, text)
    await dev.hears(({ type, ok }) => type === 'loaded' && ok === true)
  })
}

/** A command from its start to its exit. */
async function command(what: string, ...args: string[]): Promise<void> {
  const { status, stderr } = await timed(what, () => spawnSync(process.execPath, [main, ...args]))
  if (status !== 0) throw new Error(`servo ${args.join(' ')} ended with ${status}: ${stderr}`)
}

for (let round = 0; round < ROUNDS; round++) {
  await timed('node alone, start to exit', () => spawnSync(process.execPath, ['--eval', '0']))
  await command('servo --version', '--version')
  const project = shop()
  writeFileSync(path.join(project, 'assets/nothing.ts'), NOTHING)
  const cold = await started('ready, never run before', project)
  await stopped('Ctrl-C → gone, idle', cold, project)

  const warm = await started('ready, run before', project)
  await save(warm, project, round)
  await command('servo run nothing, just saved', 'run', 'nothing', '--project', project)
  // Workers load what was saved in the background.
  await setTimeout(SETTLED_MS)
  await command('servo run nothing', 'run', 'nothing', '--project', project)
  await stopped('Ctrl-C → gone, idle', warm, project)

  writeFileSync(path.join(project, 'assets/slow.ts'), SLOW)
  const busy = await started('ready, run before', project, '--run', 'slow')
  await busy.hears(({ task }) => task?.state === 'RUNNING')
  await stopped('Ctrl-C → gone, in the middle of a task', busy, project)
}

const node = median(times.get('node alone, start to exit') ?? [])
report.table('What one waits for', [
  ['', 'median', 'worst', ': node alone'],
  ...[...times].map(([what, each]) => [
    what,
    milliseconds(median(each)),
    milliseconds(Math.max(...each)),
    ratio(median(each) / node),
  ]),
])
report.note(
  `${codes.length} stops: ${codes.filter((code) => code !== 0).length} did not end with 0; ${sum(leftAtOnce)} processes outlived ` +
    `their server, ${sum(leftForGood)} of them for more than ${NOTICED_MS / 1_000} s.`,
)
for (const [what, each] of times) report.samples(what, 'ms', each)
report.finish()
await end()
