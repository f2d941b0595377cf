import type { MetricRegistry } from '../../lib/metrics.ts'
import { SECOND_MS } from '../../lib/time.ts'

/** Seldom enough to cost nothing, often enough to notice a process that does not answer. */
const LOOK_EVERY_MS = 500
const LAG_SEC = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5]

/** Adds what is known of the process, under the names that Prometheus' own libraries use. Returns how to stop measuring. */
export function measureProcess(registry: MetricRegistry): () => void {
  const lag = registry.histogram(
    'servo_event_loop_lag_seconds',
    'How much later than asked a timer rang, twice a second: how long the process kept others waiting.',
    LAG_SEC,
  )
  const began = (performance.timeOrigin + performance.now()) / SECOND_MS - process.uptime()
  registry.reading('gauge', 'process_start_time_seconds', 'When the process began, in seconds since 1970.', () => began)
  registry.reading('counter', 'process_cpu_seconds_total', 'Processor time of this process, without its workers.', () => {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1e6
  })
  registry.reading('gauge', 'process_resident_memory_bytes', 'Memory of this process, without its workers.', () =>
    process.memoryUsage.rss(),
  )
  registry.reading('gauge', 'nodejs_heap_size_used_bytes', 'Memory that objects use.', () => process.memoryUsage().heapUsed)
  let asked = performance.now()
  const timer = setInterval(() => {
    const now = performance.now()
    lag.observe(Math.max(0, now - asked - LOOK_EVERY_MS) / SECOND_MS)
    asked = now
  }, LOOK_EVERY_MS)
  timer.unref()
  return () => clearInterval(timer)
}
