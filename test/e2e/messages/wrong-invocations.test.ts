import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { expectFile } from '../support/golden-text.ts'
import { TestProject } from '../support/project.ts'
import { Session } from '../support/session.ts'

const ASSETS = `import { asset, daily, keys, run, schedule, sensor, source, webhook } from 'servo-flow'
import { z } from 'zod'
export const whole = asset('whole', { run: () => ({ rows: 1 }) })
export const days = asset('raw/days', { partitions: daily({ start: '2025-01-01', end: '2025-02-01' }), run: () => 1 })
export const sum = asset('mart/sum', { inputs: { days }, partitions: daily({ start: '2025-01-01', end: '2025-02-01' }), run: () => 1 })
export const regions = asset('regions', { partitions: keys(['eu', 'us']), run: () => 1 })
export const crm = source('crm', { schema: z.object({ id: z.number() }), uri: 'file:///crm/*.parquet' })
export const nightly = schedule('nightly', { cron: '0 5 * * *', select: [whole] })
export const inbox = sensor.push('inbox', {
  source: webhook({ path: 'inbox', verify: 'none', schema: z.object({ id: z.number() }) }),
  on: ({ id }) => run(whole, { key: String(id) }),
})
`

/** Each is wrong without a server and without any state. */
const WITHOUT_STATE: readonly string[] = [
  '',
  'rum',
  'version',
  'describe mart/revenue',
  'logs run_a',
  'cancel run_a',
  'rerun run_a',
  'materialize whole',
  'server',
  'runs',
  'runs lst',
  'help runs lgs',
  'run',
  'run whole --detahc',
  'run whole --key',
  'run whole --label sales',
  'run whole --priority high',
  'run whole --concurrency 0',
  'run whole --dry-run --detach',
  'dev --port 99999',
  'dev --json run_id,state',
  'runs show',
  'runs list extra',
  'runs list --limit 0',
  'runs list --status done',
  'runs list --status faild',
  'runs list --since yesterday',
  'runs list --state failed',
  'runs list --json run,state',
  'runs rerun run_a --all --select whole',
  'runs logs run_a --attempt first',
  'assets graph --format svg',
  'show whole --csv',
  'partitions list --status never',
  'partitions stale --cause broken',
  'partitions add customers',
  'partitions report raw/days --at yesterday',
  'partitions wipe whole',
  'schedules ticks --status ran',
  'schedules create hourly --select whole',
  'schedules create hourly --cron 0,5 --select whole --overlap wait',
  'schedules update hourly',
  'schedules catchup nightly',
  'schedules trigger nightly --at 05:00 --partition x',
  'sensors evals inbox --status failed',
  'sensors send inbox',
  'sensors send inbox --data {id:7}',
  'sensors create inbox --select whole',
  'sensors create inbox --webhook in --select whole',
  'cron next 0 6 * * MON',
  'cron next 99 * * * *:quoted',
  'cron explain @daily --timezone Mars/Olympus',
  'completion tcsh',
  'query',
  'verify nowhere',
  'runs list',
  'runs list --project nowhere',
  'init ../new --name My_Shop!',
  'init . --yes',
  'init _:spaced',
  'init new --install --no-install',
  'init ../new --assets node_modules',
  `init ${'x'.repeat(300)}`,
  'init assets --yes',
  'init .git/x --yes',
  'init /proc/x --yes --no-install',
  'init loop --yes',
  'init gone --yes',
  'init ../servo-not-there --assets ä_b:spaced',
  'tokens create --role viewer',
  'start --port 99999999',
  'start --drain -1',
  'start --concurrency none',
  'runs list --url http://127.0.0.1:1 --token x',
]

/** Each is asked of a server that runs the project. */
const WITH_SERVER: readonly string[] = [
  'run who',
  'run raw/days',
  'run raw/days --partition 2024-12-31',
  'run raw/days --partition 2025-02-30',
  'run raw/days --partition 2025-01-31..2025-01-01',
  'run raw/days --partition yesterday',
  'run raw/days --partition 2025-01-*',
  'run raw/days --partition 2025-01-01,2025-01-02',
  'run regions --partition latest',
  'run regions --partition es',
  'run _:spaced',
  'run mart/sum --partition 2025-01-01',
  'run whole --partition 2025-01-01',
  'run crm',
  'run key:"whole',
  'run group:nothing',
  'runs show run_a',
  'runs show 17',
  'runs cancel run_a',
  'assets show who',
  'show whole',
  'show crm',
  'show mart/sum --partition 2025-01-01',
  'show whole --partition x',
  'partitions why raw/days',
  'partitions why whole 2025-01-01',
  'partitions keys customers',
  'partitions add customers acme',
  'partitions report who',
  'schedules show nightyl',
  'schedules pause nightly nobody',
  'schedules delete nightly',
  'schedules create hourly --cron 0_61_*_*_* --select whole:spaced',
  'schedules create hourly --cron 0_5_*_*_* --select who:spaced',
  'schedules trigger nightly --at 2099-01-01T00:00',
  'sensors show outbox',
  'sensors evaluate inbox',
  'sensors replay inbox m-1',
  'why run run_a',
  'why asset who',
  'why schedule nightly --at noon',
  'why schedule weekly',
  'query .:spaced',
  'query selec_*_from_runs:spaced',
  'query select_*_form_runs:spaced',
  'query describe_mart/sum:spaced',
  'dev --port 0',
]

const projects: TestProject[] = []
let session: Session
let empty = ''
beforeAll(() => {
  session = new Session()
  empty = fs.mkdtempSync(path.join(os.tmpdir(), 'servo-nowhere-'))
})
afterAll(async () => {
  session.end()
  for (const each of projects) await each.end()
  fs.rmSync(empty, { recursive: true })
})

/** A line as it is typed. A word with spaces has them as `_`, if the line ends in `:spaced`; `:quoted` makes one word of the rest. */
function argsOf(line: string): string[] {
  if (line.endsWith(':quoted')) return ['cron', 'next', line.slice('cron next '.length, -':quoted'.length)]
  if (line.endsWith(':spaced')) return argsOf(line.slice(0, -':spaced'.length)).map((word) => word.replaceAll('_', ' '))
  return line === '' ? [] : line.split(' ')
}

/** As a shell shows it. */
const typed = (args: readonly string[]): string =>
  ['servo', ...args.map((word) => (/[^\w./:=@,-]/.test(word) ? `'${word}'` : word))].join(' ')

/** Each command with its exit code and everything it printed. */
async function transcript(dir: string, lines: readonly string[]): Promise<string> {
  const said: string[] = []
  for (const line of lines) {
    const args = argsOf(line)
    const { code, stdout, stderr } = await session.servo(dir, ...args)
    const text = `${stdout}${stderr}`.replaceAll(fs.realpathSync(dir), '/shop').replaceAll(dir, '/shop')
    // No one needs the whole help in this list.
    const shown = /^Usage: /.test(text) ? `${text.split('\n', 1)[0]}\n…\n` : text
    expect.soft(code, `${line}: ${text}`).not.toBe(0)
    expect.soft(code, `${line}: ${text}`).not.toBe(4)
    expect.soft(text, line).not.toMatch(/\n\s+at /)
    said.push(`$ ${typed(args)}\n${shown}exit code ${code}\n`)
  }
  return said.join('\n')
}

const readable = (text: string): string =>
  text.replaceAll(/run_[a-z2-7]{26}/g, 'run_…').replaceAll(/process \d+ at http:\S+/g, 'process 4711 at http://127.0.0.1:4400')

test('each wrong command ends with its exit code, says what is wrong and what to do, and writes nothing', async () => {
  const project = new TestProject({ 'assets/all.ts': ASSETS, 'assets/package.json': '[]' })
  projects.push(project)
  fs.symlinkSync('loop', project.file('loop'))
  fs.symlinkSync('nowhere', project.file('gone'))
  const text = await transcript(project.dir, WITHOUT_STATE)
  expectFile(path.join(import.meta.dirname, 'wrong-invocations.txt'), readable(text))
  expect(fs.readdirSync(project.dir).sort()).toEqual(['assets', 'gone', 'loop', 'node_modules', 'servo.config.ts'])
})

test('of a word that is very long an error repeats the beginning', async () => {
  const project = new TestProject({ 'assets/all.ts': ASSETS })
  projects.push(project)
  const long = 'x'.repeat(100_000)
  for (const line of [
    ...['%', 'run %', 'run --dry-run %', 'run raw/days --dry-run --partition %', 'runs list --status %', 'dev --port %'],
    ...[
      'runs list --status=%',
      'assets graph --format %',
      'init ../new --name %',
      'init %',
      'completion %',
      'doctor --project %',
    ],
    ...[
      'run raw/days --dry-run --partition 2025-01-01..%',
      'runs list --json %',
      'run whole --label %',
      '--%',
      'run whole --%',
    ],
  ]) {
    const { code, stdout, stderr } = await session.servo(project.dir, ...line.replace('%', long).split(' '))
    expect.soft(code, line).toBe(line.startsWith('doctor') ? 1 : 2)
    expect.soft(`${stdout}${stderr}`.length, `${line}: ${stderr.slice(0, 300)}`).toBeLessThan(3_000)
  }
  await project.servo('run', 'whole', '--quiet')
  for (const [line, code] of [
    ['assets list key:%', 0],
    ['assets graph +group:%+', 0],
    ['partitions stale owner:%', 0],
    ['runs list --asset %', 0],
    ['backfills list --asset %', 0],
    ['query %', 2],
    ['query select_%', 2],
    ['query select_*_from_%', 2],
    ["query select_'%", 2],
    ['query select_1_from_(select_%)', 2],
  ] as const) {
    const words = line.split(' ').map((word) => word.replaceAll('_', ' ').replace('%', long))
    const ran = await session.servo(project.dir, ...words)
    expect.soft(ran.code, `${line}: ${ran.stderr.slice(0, 300)}`).toBe(code)
    expect.soft(`${ran.stdout}${ran.stderr}`.length, `${line}: ${ran.stderr.slice(0, 300)}`).toBeLessThan(3_000)
    expect.soft(`${ran.stdout}${ran.stderr}`, line).toMatch(/x{50,60}(…|\.\.\.)/)
  }
})

test('each command that the server refuses says what is wrong and what to do', async () => {
  const project = new TestProject({ 'assets/all.ts': ASSETS })
  projects.push(project)
  const dev = await project.dev()
  expect(dev.shown).not.toContain('not loaded')
  const text = await transcript(project.dir, WITH_SERVER)
  expectFile(path.join(import.meta.dirname, 'refused-requests.txt'), readable(text))
})

test.each([
  ['run', 'whole'],
  ['runs', 'list'],
  ['assets', 'list'],
  ['partitions', 'keys', 'a'],
  ['query', 'show tables'],
  ['verify'],
])('outside of a project servo %s names the folder that it looked in', async (...args) => {
  const { code, stderr } = await session.servo(empty, ...args)
  const looked = fs.realpathSync(empty)
  expect(stderr).toBe(
    `error: no servo.config.ts in ${looked} or any folder above it\nhint: Change to the folder of a project, or name it with --project. servo init creates one.\n`,
  )
  expect(code).toBe(2)
  const named = await session.servo(os.tmpdir(), ...args, '--project', empty)
  expect(named).toMatchObject({ code: 2, stderr: expect.stringContaining(`error: no servo.config.ts in ${empty}\n`) })
  expect(fs.readdirSync(empty)).toEqual([])
})
