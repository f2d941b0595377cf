import { closeSync, openSync, readSync } from 'node:fs'
import path from 'node:path'
import { fsStore } from '../../src/adapters/fs/object-store.ts'
import { systemClock } from '../../src/adapters/system/clock.ts'
import { orchestration } from '../../src/domain/index.ts'
import { View } from '../../src/engine/loop/view.ts'
import { Compactor } from '../../src/engine/publish/compactor.ts'
import { memory } from './memory.ts'
import { meteredStore } from './metered-store.ts'
import { processorTime } from './processor-time.ts'
import { scope } from './stream.ts'

/** What one opening took. */
export interface Opened {
  readonly wallMs: number
  readonly cpuMs: number
  readonly rawMs: number
  readonly requests: number
  readonly rounds: number
  readonly bytesRead: number
  readonly rows: number
  readonly heap: number
  readonly rss: number
}

const [folder = '', what = ''] = process.argv.slice(2)
const store = meteredStore(fsStore(folder))
const options = { store, scope, registry: orchestration, clock: systemClock, name: 'bench' }
const before = await memory()
const cpu = process.cpuUsage()
const start = performance.now()
const { state } = what === 'view' ? await View.open(options) : await Compactor.open(options)
const wallMs = performance.now() - start
const cpuMs = processorTime(cpu)
const { requests, rounds, bytesRead, read } = store.take()
const after = await memory()

const rawStart = performance.now()
for (const { path: file, bytes } of read) {
  const fd = openSync(path.join(folder, file), 'r')
  readSync(fd, new Uint8Array(bytes))
  closeSync(fd)
}
const opened: Opened = {
  wallMs,
  cpuMs,
  rawMs: performance.now() - rawStart,
  requests,
  rounds,
  bytesRead,
  rows: state.size(),
  heap: after.heap - before.heap,
  rss: after.rss,
}
process.stdout.write(JSON.stringify(opened))
