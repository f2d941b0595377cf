import { leaseConformance } from '../../testing/conformance/lease.ts'
import { PausableProcess } from '../../testing/pausable-process.ts'
import { VirtualClock } from '../../testing/virtual-clock.ts'
import { MemoryClaims, memoryLease } from './lease.ts'

leaseConformance('a lease in memory', async () => {
  const clock = new VirtualClock()
  const claims = new MemoryClaims()
  const periodMs = 10_000
  return {
    periodMs,
    pass: (ms) => clock.advance(ms),
    join() {
      const process = new PausableProcess(clock)
      return {
        lease: memoryLease({ clock: process.clock, periodMs }, claims),
        pause: () => process.pause(),
        resume: () => process.resume(),
      }
    },
  }
})
