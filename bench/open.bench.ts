import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { historyOf } from './lib/kept-history.ts'
import type { Opened } from './lib/open-once.ts'
import { quick, Report } from './lib/report.ts'
import { median } from './lib/stats.ts'
import { kilobytes, megabytes, milliseconds, ratio } from './lib/table.ts'

/*
 * From nothing to a state in memory, in a new process each time, with ten thousand and with a million finished tasks
 * behind it. The page cache is warm: what is measured is what Servo does, not how fast a disk is. Beside it, the same
 * ranges of the same files read again without us.
 */
const SIZES = quick ? [10_000, 100_000] : [10_000, 1_000_000]
const ROUNDS = quick ? 3 : 11
const WHAT = ['compactor', 'view'] as const

const report = new Report('open', 'cold start in a new process, page cache warm')

const folders = new Map<number, string>()
for (const size of SIZES) folders.set(size, await historyOf(size))

const opened = new Map<string, Opened[]>()
for (let round = 0; round < ROUNDS; round++) {
  for (const [size, folder] of folders) for (const what of WHAT) add(`${what} ${size}`, open(folder, what))
}

function open(folder: string, what: string): Opened {
  const script = path.join(import.meta.dirname, 'lib/open-once.ts')
  const { stdout, status } = spawnSync(process.execPath, ['--expose-gc', script, folder, what], {
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`opening ${folder} failed`)
  return JSON.parse(stdout) as Opened
}

function add(key: string, one: Opened): void {
  opened.set(key, [...(opened.get(key) ?? []), one])
}

const rows: { label: string; of: (one: Opened) => number; as: (value: number) => string }[] = [
  { label: 'time', of: (one) => one.wallMs, as: milliseconds },
  { label: 'computing', of: (one) => one.cpuMs, as: milliseconds },
  { label: 'raw reads of the same bytes', of: (one) => one.rawMs, as: milliseconds },
  { label: 'time : raw reads', of: (one) => one.wallMs / one.rawMs, as: ratio },
  { label: 'store requests', of: (one) => one.requests, as: String },
  { label: 'one after the other', of: (one) => one.rounds, as: String },
  { label: 'read', of: (one) => one.bytesRead, as: kilobytes },
  { label: 'rows in memory', of: (one) => one.rows, as: String },
  { label: 'heap, more than before', of: (one) => one.heap, as: megabytes },
  { label: 'resident', of: (one) => one.rss, as: megabytes },
]
for (const what of WHAT) {
  const of = (size: number, value: (one: Opened) => number): number => median((opened.get(`${what} ${size}`) ?? []).map(value))
  const [first = 0, last = 0] = SIZES
  report.table(what === 'view' ? 'A view, as a reader opens it' : 'A compactor', [
    ['', ...SIZES.map((size) => `${size.toLocaleString('en')} tasks`), 'last : first'],
    ...rows.map((row) => [
      row.label,
      ...SIZES.map((size) => row.as(of(size, row.of))),
      ratio(of(last, row.of) / of(first, row.of)),
    ]),
  ])
  for (const size of SIZES)
    report.samples(
      `${what}, ${size} tasks: time`,
      'ms',
      (opened.get(`${what} ${size}`) ?? []).map((one) => one.wallMs),
    )
}
report.finish()
