import { fsStore } from '../../src/adapters/fs/object-store.ts'
import { systemClock } from '../../src/adapters/system/clock.ts'
import { orchestration } from '../../src/domain/index.ts'
import { View } from '../../src/engine/loop/view.ts'
import { meteredStore } from './metered-store.ts'
import { processorTime } from './processor-time.ts'
import { statusesOver } from './statuses.ts'
import { scope } from './stream.ts'

/** What one question took in a process that knew nothing before. */
export interface Asked {
  readonly wallMs: number
  readonly cpuMs: number
  readonly requests: number
  readonly bytesRead: number
}

const [folder = '', question = '', asset = ''] = process.argv.slice(2)
const store = meteredStore(fsStore(folder))
const cpu = process.cpuUsage()
const start = performance.now()
const statuses = statusesOver(await View.open({ store, scope, registry: orchestration, clock: systemClock }))
if (question === 'stale') await statuses.stale({ select: asset, limit: 50 })
else await statuses.summaries(asset)
const { requests, bytesRead } = store.take()
const asked: Asked = { wallMs: performance.now() - start, cpuMs: processorTime(cpu), requests, bytesRead }
process.stdout.write(JSON.stringify(asked))
