import path from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { keepHistory } from './lib/kept-history.ts'
import { type Memory, memory } from './lib/memory.ts'
import { layerOf } from './lib/metered-store.ts'
import { type RawDisk, rawDisk } from './lib/raw-disk.ts'
import { quick, Report } from './lib/report.ts'
import { scratchFolder } from './lib/scratch.ts'
import { mean, median, sum } from './lib/stats.ts'
import type { StreamOptions } from './lib/stream.ts'
import { kilobytes, megabytes, milliseconds, number, ratio } from './lib/table.ts'
import { type Batch, type Collection, Workload } from './lib/workload.ts'

/*
 * What a batch of a thousand events costs when more and more has happened before: it should not matter. One compactor
 * lives through all of it; at each size some whole cycles of deltas and a base are measured, and after every batch the
 * same files are written without us, as the disk's own price of what the batch wrote.
 */
const EVENTS = 1_000
const CYCLES = 2
const MIN_BATCHES = 64

const scenarios: Record<string, { about: string; sizes: readonly number[]; options: StreamOptions }> = {
  'runs of 100 tasks': {
    sizes: quick ? [10_000, 100_000] : [10_000, 100_000, 1_000_000],
    about: '8 runs at once, 100 assets × 365 partitions materialized again and again',
    options: { tasksPerRun: 100, liveRuns: 8, partitions: 365 },
  },
  'runs of 1 task': {
    // A task here is seven events and a run with all its index rows, so there is as much history as above with fewer.
    sizes: quick ? [3_000, 30_000] : [10_000, 100_000, 300_000],
    about:
      'the worst case: 200 runs at once, each with a partition of its own, so that every task adds a row to four indexes for ever',
    options: { tasksPerRun: 1, liveRuns: 200 },
  },
}

const report = new Report('compaction', `batches of ${EVENTS} events on top of finished tasks`)

interface Window {
  readonly tasks: number
  readonly batches: readonly Batch[]
  readonly rawMs: readonly number[]
  /** The longest that nothing else could run in this process. */
  readonly blockedMs: number
  readonly memory: Memory
}

/** What happened between two windows: the whole price of history, merges of sorted runs included. */
interface Stretch {
  readonly events: number
  readonly batches: readonly Batch[]
  readonly collections: readonly Collection[]
  readonly seconds: number
}

for (const [name, { about, sizes, options }] of Object.entries(scenarios)) {
  const folder = scratchFolder('compaction')
  const raw = rawWriter(scratchFolder('raw'))
  const workload = await Workload.open(folder, options)
  const windows: Window[] = []
  const stretches: Stretch[] = []
  for (const size of sizes) {
    stretches.push(await build(workload, size))
    if (options.tasksPerRun > 1) keepHistory(folder, size)
    windows.push(await measure(workload, raw))
  }
  show(`${name} (${about})`, windows, stretches)
}
report.finish()

async function build(workload: Workload, tasks: number): Promise<Stretch> {
  const batches: Batch[] = []
  const eventsBefore = workload.compactor.manifest.watermarks.events
  const collectedBefore = workload.collections.length
  const start = performance.now()
  await workload.buildTo(tasks, (batch) => batches.push({ ...batch, read: [] }))
  return {
    events: workload.compactor.manifest.watermarks.events - eventsBefore,
    batches,
    collections: workload.collections.slice(collectedBefore),
    seconds: (performance.now() - start) / 1_000,
  }
}

async function measure(workload: Workload, raw: (written: Batch['written']) => Promise<number>): Promise<Window> {
  const tasks = workload.stream.finishedTasks
  const batches: Batch[] = []
  const rawMs: number[] = []
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  for (let bases = 0; bases < CYCLES || batches.length < MIN_BATCHES || batches.at(-1)?.kind === 'delta'; ) {
    const batch = await workload.batch(EVENTS)
    if (batch.kind === 'base') bases += 1
    batches.push(batch)
    rawMs.push(await raw(batch.written))
    await workload.collect()
  }
  delay.disable()
  return { tasks, batches, rawMs, blockedMs: delay.max / 1e6, memory: await memory() }
}

/** Writes files of the same sizes into as many folders, as durably and as much at once: all but the manifests together. */
function rawWriter(root: string): (written: Batch['written']) => Promise<number> {
  const disks = new Map<string, RawDisk>()
  const write = async ({ path: file, bytes }: Batch['written'][number]): Promise<void> => {
    const name = path.dirname(file).replaceAll('/', '_')
    const disk = disks.get(name) ?? rawDisk(path.join(root, name))
    disks.set(name, disk)
    await disk.create(new Uint8Array(bytes))
  }
  return async (written) => {
    const start = performance.now()
    await Promise.all(written.filter((file) => layerOf(file.path) !== 'manifest').map(write))
    for (const manifest of written.filter((file) => layerOf(file.path) === 'manifest')) await write(manifest)
    return performance.now() - start
  }
}

function show(title: string, windows: readonly Window[], stretches: readonly Stretch[]): void {
  const rows: { label: string; of: (window: Window) => number; as: (value: number) => string }[] = [
    { label: 'batches measured', of: ({ batches }) => batches.length, as: String },
    { label: 'computing, median', of: ({ batches }) => median(batches.map((batch) => batch.cpuMs)), as: milliseconds },
    { label: 'computing, mean', of: ({ batches }) => mean(batches.map((batch) => batch.cpuMs)), as: milliseconds },
    {
      label: 'JSON.parse of the events, median',
      of: ({ batches }) => median(batches.map((batch) => batch.parseMs)),
      as: milliseconds,
    },
    {
      label: 'computing, median : JSON.parse',
      of: ({ batches }) => median(batches.map((batch) => batch.cpuMs / batch.parseMs)),
      as: ratio,
    },
    {
      label: 'computing, mean : JSON.parse',
      of: ({ batches }) => sum(batches.map((batch) => batch.cpuMs)) / sum(batches.map((batch) => batch.parseMs)),
      as: ratio,
    },
    { label: 'time, median', of: ({ batches }) => median(batches.map((batch) => batch.wallMs)), as: milliseconds },
    { label: 'time, mean', of: ({ batches }) => mean(batches.map((batch) => batch.wallMs)), as: milliseconds },
    { label: 'time, longest', of: ({ batches }) => Math.max(...batches.map((batch) => batch.wallMs)), as: milliseconds },
    { label: 'nothing else could run, longest', of: ({ blockedMs }) => blockedMs, as: milliseconds },
    { label: 'raw writes of the same files, mean', of: ({ rawMs }) => mean(rawMs), as: milliseconds },
    {
      label: 'time : raw writes',
      of: ({ batches, rawMs }) => sum(batches.map((batch) => batch.wallMs)) / sum(rawMs),
      as: ratio,
    },
    { label: 'written, mean', of: ({ batches }) => mean(batches.map((batch) => batch.bytesWritten)), as: kilobytes },
    { label: 'read, mean', of: ({ batches }) => mean(batches.map((batch) => batch.bytesRead)), as: kilobytes },
    { label: 'store requests, mean', of: ({ batches }) => mean(batches.map((batch) => batch.requests)), as: number },
    { label: 'heap after collection', of: ({ memory }) => memory.heap, as: megabytes },
    { label: 'buffers', of: ({ memory }) => memory.buffers, as: megabytes },
    { label: 'resident', of: ({ memory }) => memory.rss, as: megabytes },
  ]
  const heading = ['', ...windows.map(({ tasks }) => `${tasks.toLocaleString('en')} tasks`), 'last : first']
  const first = windows[0] as Window
  const last = windows.at(-1) as Window
  report.table(title, [
    heading,
    ...rows.map(({ label, of, as }) => [label, ...windows.map((window) => as(of(window))), ratio(of(last) / of(first))]),
  ])

  const layers = [
    ...new Set(windows.flatMap(({ batches }) => batches.flatMap(({ written }) => written.map((file) => layerOf(file.path))))),
  ].sort()
  const perLayer = ({ batches }: Pick<Window, 'batches'>, layer: string, events: number): number =>
    sum(batches.flatMap(({ written }) => written.filter((file) => layerOf(file.path) === layer).map((file) => file.bytes))) /
    (events / EVENTS)
  report.table('Written per batch, by kind of file', [
    heading,
    ...layers.map((layer) => {
      const bytes = windows.map((window) => perLayer(window, layer, window.batches.length * EVENTS))
      return [layer, ...bytes.map(kilobytes), ratio((bytes.at(-1) ?? 0) / (bytes[0] ?? 0))]
    }),
  ])

  const amortized: { label: string; of: (stretch: Stretch) => string }[] = [
    {
      label: 'computing',
      of: ({ batches, events }) => milliseconds(sum(batches.map((batch) => batch.cpuMs)) / (events / EVENTS)),
    },
    {
      label: 'computing : JSON.parse',
      of: ({ batches }) => ratio(sum(batches.map((batch) => batch.cpuMs)) / sum(batches.map((batch) => batch.parseMs))),
    },
    {
      label: 'written',
      of: ({ batches, events }) => kilobytes(sum(batches.map((batch) => batch.bytesWritten)) / (events / EVENTS)),
    },
    { label: 'read', of: ({ batches, events }) => kilobytes(sum(batches.map((batch) => batch.bytesRead)) / (events / EVENTS)) },
    { label: 'longest publish', of: ({ batches }) => milliseconds(Math.max(...batches.map((batch) => batch.wallMs))) },
    {
      label: 'garbage collection, each',
      of: ({ collections }) => milliseconds(median(collections.map((collection) => collection.wallMs))),
    },
    {
      label: 'requests of a collection',
      of: ({ collections }) => number(median(collections.map((collection) => collection.requests))),
    },
    { label: 'seconds in all', of: ({ seconds }) => number(seconds) },
  ]
  report.table('All that led there, per 1,000 events, merges of sorted runs included', [
    ['', ...windows.map(({ tasks }) => `to ${tasks.toLocaleString('en')}`)],
    ...amortized.map(({ label, of }) => [label, ...stretches.map(of)]),
  ])

  for (const { tasks, batches, rawMs } of windows) {
    report.samples(
      `${title.split(' (')[0]}, ${tasks} tasks: computing`,
      'ms',
      batches.map((batch) => batch.cpuMs),
    )
    report.samples(
      `${title.split(' (')[0]}, ${tasks} tasks: time`,
      'ms',
      batches.map((batch) => batch.wallMs),
    )
    report.samples(`${title.split(' (')[0]}, ${tasks} tasks: raw writes`, 'ms', rawMs)
    report.samples(
      `${title.split(' (')[0]}, ${tasks} tasks: written`,
      'bytes',
      batches.map((batch) => batch.bytesWritten),
    )
  }
}
