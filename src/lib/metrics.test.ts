import { expect, test } from 'vitest'
import { MetricRegistry } from './metrics.ts'

test('metrics are written in the text format of Prometheus, with a sentence and a type each', () => {
  const registry = new MetricRegistry()
  registry.counter('calls_total', 'Calls.').add(3)
  const ticks = registry.counters('ticks_total', 'Ticks.', ['status', 'of'], [['failed', 'a']])
  ticks.of('done', 'a').add()
  ticks.of('done', 'a').add()
  registry.reading('gauge', 'depth', 'How deep.', () => 7.5)
  registry.readings('rooms', 'Rooms.', 'state', () => [['free', 2]])
  expect(registry.text()).toBe(
    `# HELP calls_total Calls.
# TYPE calls_total counter
calls_total 3
# HELP ticks_total Ticks.
# TYPE ticks_total counter
ticks_total{status="failed",of="a"} 0
ticks_total{status="done",of="a"} 2
# HELP depth How deep.
# TYPE depth gauge
depth 7.5
# HELP rooms Rooms.
# TYPE rooms gauge
rooms{state="free"} 2
`,
  )
})

test('a histogram counts an observation in every bucket that it does not exceed, a bound included', () => {
  const registry = new MetricRegistry()
  const delay = registry.histogram('delay_seconds', 'Delay.', [0.5, 1, 5])
  for (const value of [0.25, 0.5, 1, 1.5, 60]) delay.observe(value)
  expect(registry.text().split('\n').slice(2, -1)).toEqual([
    'delay_seconds_bucket{le="0.5"} 2',
    'delay_seconds_bucket{le="1"} 3',
    'delay_seconds_bucket{le="5"} 4',
    'delay_seconds_bucket{le="+Inf"} 5',
    'delay_seconds_sum 63.25',
    'delay_seconds_count 5',
  ])
})

test('label values with quotes, backslashes and line ends stay one line', () => {
  const registry = new MetricRegistry()
  registry.counters('calls_total', 'a\\b\nc', ['route']).of('a"b\\c\nd').add()
  expect(registry.text()).toBe(
    `# HELP calls_total a\\\\b\\nc
# TYPE calls_total counter
calls_total{route="a\\"b\\\\c\\nd"} 1
`,
  )
})

test('a gauge that nobody knows now has no line', () => {
  const registry = new MetricRegistry()
  registry.reading('gauge', 'depth', 'How deep.', () => undefined)
  expect(registry.text()).toBe('# HELP depth How deep.\n# TYPE depth gauge\n')
})
