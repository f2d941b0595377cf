import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { memoryStore } from '../../src/adapters/memory/object-store.ts'
import { orchestration } from '../../src/domain/index.ts'
import { MaterializationReported } from '../../src/domain/partitions/materialization-reported.event.ts'
import { Loop } from '../../src/engine/loop/loop.ts'
import { ulidSource } from '../../src/lib/ulid.ts'
import { newEvent } from '../../src/model/event.ts'
import { seededBytes } from '../../src/testing/seeded-bytes.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'

const PATH = 'tenant=acme/workspace=analytics/ledger/orchestration/2026-01-01/01KDVDNA00WY1MCY6E430CQPWX.json'

/** Sorted names at every depth and no white space, written down by hand. */
const MEMBERS = [
  '"events":[',
  '{"actor":"ada","causation_id":"c1","correlation_id":"k1","event_id":"01KDVDNA00WY1MCY6E430CQPWV"',
  ',"event_type":"MaterializationReported","event_version":1,"idempotency_key":"materialization_report:r1"',
  ',"payload":{"asset_key":"raw/orders","materialized_at":"2025-01-15T10:00:00.000Z"',
  String.raw`,"metadata":{"a":{},"parts":[{"name":"b","size":0.5},null,true],"rows":12,"zone":"ü \"x\""}`,
  ',"partition_key":"","report_id":"r1","reported_by":"ada"}',
  ',"source":"servo/test","tenant_id":"acme","timestamp":"2026-01-01T00:00:00.000Z"',
  ',"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","workspace_id":"analytics"}',
  ',{"event_id":"01KDVDNA00WY1MCY6E430CQPWW"',
  ',"event_type":"MaterializationReported","event_version":1,"idempotency_key":"materialization_report:r2"',
  ',"payload":{"asset_key":"raw/orders","materialized_at":"2025-01-15T10:00:00.000Z"',
  ',"partition_key":"","report_id":"r2","reported_by":"ada"}',
  ',"source":"servo/test","tenant_id":"acme","timestamp":"2026-01-01T00:00:00.000Z","workspace_id":"analytics"}',
  '],"segment":"01KDVDNA00WY1MCY6E430CQPWX","sequence":"01KDVDNA00WY1MCY6E430CQPWX-1"',
].join('')

test('[L2] a segment is these bytes: canonical JSON, then the checksum of all before it', async () => {
  const clock = new VirtualClock()
  const store = memoryStore()
  const loop = await Loop.open({
    store,
    clock,
    scope: { tenant_id: 'acme', workspace_id: 'analytics' },
    ulid: ulidSource(() => clock.now(), seededBytes(1)),
    registry: orchestration,
    name: 'test',
    source: 'servo/test',
    controllers: [],
  })
  const report = { reported_by: 'ada', materialized_at: '2025-01-15T10:00:00.000Z', asset_key: 'raw/orders' }
  const metadata = { zone: 'ü "x"', rows: 12, parts: [{ size: 0.5, name: 'b' }, null, true], a: {} }
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  await loop.submit([
    newEvent(
      MaterializationReported,
      { report_id: 'r1', metadata, ...report },
      { traceparent, correlation_id: 'k1', causation_id: 'c1', actor: 'ada' },
    ),
    newEvent(MaterializationReported, { report_id: 'r2', ...report }),
  ])
  const checksum = createHash('sha256').update(`{${MEMBERS}}`).digest('hex')
  const bytes = await store.get(PATH)
  expect(Buffer.from(bytes ?? []).toString()).toBe(`{${MEMBERS},"sha256":"${checksum}"}`)
})
