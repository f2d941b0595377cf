import { memoryLease } from '../adapters/memory/lease.ts'
import { memoryNotifier } from '../adapters/memory/notifier.ts'
import { memoryStore } from '../adapters/memory/object-store.ts'
import { memorySecrets } from '../adapters/memory/secrets.ts'
import { MemoryTaskQueue } from '../adapters/memory/task-queue.ts'
import { encoderHere } from '../engine/publish/encoder.ts'
import { ulidSource } from '../lib/ulid.ts'
import type { AlarmClock } from '../ports/clock.ts'
import type { Components } from '../server/components.ts'
import { seededBytes } from './seeded-bytes.ts'

/** A server's components in memory and on the clock of a test. The same seed gives the same ids. */
export function memoryComponents(clock: AlarmClock, seed = 7): Components {
  const bytes = seededBytes(seed)
  return {
    scope: { tenant_id: 'acme', workspace_id: 'analytics' },
    store: memoryStore(),
    clock,
    ulid: ulidSource(() => clock.now(), bytes),
    random: bytes,
    secrets: memorySecrets(),
    lease: memoryLease({ clock }),
    notifier: memoryNotifier(),
    queue: new MemoryTaskQueue(clock),
    encoder: encoderHere,
    sql: async () => [],
  }
}
