// Another process that appends to the ledger of a folder: node other-writer.ts <.servo folder> <secret as JSON>. It reads
// `request <key>` for a run of `quick` and `cancel <run id>`, and prints the run's id and when the event was durable.

import { randomBytes } from 'node:crypto'
import readline from 'node:readline'
import { fsStore } from '../../../src/adapters/fs/object-store.ts'
import { systemClock } from '../../../src/adapters/system/clock.ts'
import { RunCancelRequested } from '../../../src/domain/runs/run-cancel-requested.event.ts'
import { Ledger } from '../../../src/engine/ledger/ledger.ts'
import { ulidSource } from '../../../src/lib/ulid.ts'
import { type NewEvent, newEvent } from '../../../src/model/event.ts'
import { runRequested } from '../../../src/server/workspace/requests.ts'

const [, , servoDir = '', secret = '{}'] = process.argv
const scope = { tenant_id: 'default', workspace_id: 'default' }
const ulid = ulidSource(systemClock.now, (length) => randomBytes(length))
const ledger = new Ledger({ store: fsStore(servoDir), scope, clock: systemClock, ulid, source: 'other' })

function requested(key: string): { run_id: string; event: NewEvent } {
  return runRequested(scope, JSON.parse(secret), {
    run_key: `user:${key}`,
    asset_selection: ['quick'],
    partition_selection: null,
    labels: {},
    source: { type: 'manual', user_id: 'other', request_id: key },
  })
}

function cancelled(run_id: string): { run_id: string; event: NewEvent } {
  const payload = { run_id, requested_by: 'other', reason: null }
  return { run_id, event: newEvent(RunCancelRequested, payload, { correlation_id: run_id }) }
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  const [order, what = ''] = line.split(' ')
  const { run_id, event } = order === 'cancel' ? cancelled(what) : requested(what)
  await ledger.append([event])
  console.log(JSON.stringify({ run_id, at: Date.now() }))
}
