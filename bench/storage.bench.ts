import { readdirSync, statSync } from 'node:fs'
import path from 'node:path'
import { systemClock } from '../src/adapters/system/clock.ts'
import { orchestration } from '../src/domain/index.ts'
import { collectGarbage } from '../src/engine/publish/garbage.ts'
import { folderStore } from '../src/server/components.ts'
import { end } from './lib/ending.ts'
import { inFlight } from './lib/in-flight.ts'
import { Report, scaled } from './lib/report.ts'
import { Servo } from './lib/servo.ts'
import { scope } from './lib/stream.ts'
import { kilobytes, number } from './lib/table.ts'

/*
 * What stays on disk of runs of one task, by what the task stores: files and bytes of the ledger, the tables, the data and the logs, per
 * 1,000 runs. Tables are merged first, and what no manifest needs is collected, as a server does within the hour.
 */
const RUNS = [1_000, 10_000].map(scaled)
const AT_A_TIME = 24

const ASSETS = `import { randomBytes } from 'node:crypto'
import { asset } from 'servo-flow'
const text = (bytes: number): string => randomBytes(Math.ceil(bytes * 0.75)).toString('base64').slice(0, bytes - 2)
export const nothing = asset('nothing', { run: () => undefined })
export const small = asset('small', { run: () => ({ rows: 3, at: Date.now() }) })
export const kilobyte = asset('kilobyte', { run: () => text(1_024) })
export const file = asset('file', { run: () => text(20_000) })
export const talkative = asset('talkative', { run: ({ log }) => { for (let i = 0; i < 10; i++) log.info('row group ' + i + ' of 10 is written') } })
`
const KINDS = {
  nothing: 'nothing',
  small: '30 bytes of JSON',
  kilobyte: '1 kB of JSON',
  file: '20 kB of JSON',
  talkative: 'nothing, ten lines of log',
}

interface Size {
  readonly files: number
  readonly bytes: number
}

function sizeBelow(dir: string): Size {
  let [files, bytes] = [0, 0]
  for (const entry of readdirSync(dir, { recursive: true, withFileTypes: true, encoding: 'utf8' })) {
    if (!entry.isFile()) continue
    files += 1
    bytes += statSync(path.join(entry.parentPath, entry.name)).size
  }
  return { files, bytes }
}

function sizeOf(workspace: string, folders: readonly string[]): Size {
  const there = new Set(readdirSync(workspace))
  const sizes = folders.filter((folder) => there.has(folder)).map((folder) => sizeBelow(path.join(workspace, folder)))
  return { files: sizes.reduce((sum, { files }) => sum + files, 0), bytes: sizes.reduce((sum, { bytes }) => sum + bytes, 0) }
}

const report = new Report('storage', `${RUNS.join(' and ')} runs of one task, ${AT_A_TIME} at a time`)
const PLACES = { ledger: ['ledger'], tables: ['state', 'manifests'], data: ['data'], logs: ['logs'] }
const rows: string[][] = [['stored', 'runs', ...Object.keys(PLACES).flatMap((place) => [place, 'files'])]]
for (const [asset, stored] of Object.entries(KINDS)) {
  for (const count of RUNS) {
    const servo = await Servo.open({ assets: ASSETS, concurrency: 2 })
    const workspace = path.join(servo.dir, `tenant=${scope.tenant_id}`, `workspace=${scope.workspace_id}`)
    await inFlight(count, AT_A_TIME, () => servo.run(asset))
    await servo.orchestrator.loop.compactor.publish({ kind: 'base' })
    await servo.close()
    await collectGarbage({ store: folderStore(servo.dir), scope, registry: orchestration, clock: systemClock, graceMs: 0 })
    const sizes = Object.values(PLACES).map((folders) => sizeOf(workspace, folders))
    const each = sizes.flatMap(({ files, bytes }) => [kilobytes((bytes / count) * 1_000), number((files / count) * 1_000)])
    rows.push([stored, number(count), ...each])
  }
}
report.table('On disk, per 1,000 runs', rows)
report.finish()
await end()
