import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { declarationOf } from '../declaration.ts'
import { durationMs } from '../duration.ts'
import { previous } from '../partitions/mapped.ts'
import { daily, keys, multi } from '../partitions/partitions.ts'
import { ranges } from '../partitions/ranges.ts'
import { asset, command, source, table } from './asset.ts'
import { check } from './check.ts'
import { cloudTasks, defineConfig, gcs, inProcess, local, postgres, s3 } from './config.ts'
import { RetryAfter } from './failure.ts'
import { io } from './io.ts'
import { webhook } from './push-source.ts'
import { resource } from './resource.ts'
import { sensor } from './sensor.ts'
import { sql } from './sql.ts'
import { run, schedule } from './trigger.ts'
import { when } from './when.ts'

const schema = z.object({ id: z.string() })
const day = daily({ start: '2025-01-01' })
const plain = asset('plain', { run: () => 1 })
const orders = table('raw/orders', { schema, partitions: multi({ day, region: keys(['eu', 'us']) }), run: () => [] })

const cities = asset('cities', { partitions: keys(['berlin', 'boston']), run: () => 1 })

/** As written by someone without a compiler. */
type Loose = (...args: unknown[]) => unknown
const loose = (fn: unknown): Loose => fn as Loose
const body = () => 1
const project = { project: 'x', dirs: ['assets'] }

describe('a definition', () => {
  test('is found in its value, with what the author wrote and where', () => {
    const options = { run: body }
    const value = asset('a/b', options)
    expect(declarationOf(value)).toEqual({ kind: 'asset', name: 'a/b', options, file: import.meta.filename, line: 36 })
    expect(Object.keys(value)).toEqual(['key', 'offset', 'window', 'all', 'last', 'at', 'map'])
  })

  test('leaves the stacks of others as long as they were', () => {
    const limit = Error.stackTraceLimit
    onTestFinished(() => {
      Error.stackTraceLimit = limit
    })
    Error.stackTraceLimit = 33
    asset('a', { run: body })
    expect(Error.stackTraceLimit).toBe(33)
  })

  test('of a run says which partition, as canonical text', () => {
    expect(run(orders, { partition: { region: 'eu', day: '2025-01-15' }, key: 'event-1' })).toEqual({
      assetKey: 'raw/orders',
      partition: { key: 'day=2025-01-15,region=eu', values: { region: 'eu', day: '2025-01-15' } },
      runKey: 'event-1',
    })
    expect(run(plain)).toEqual({ assetKey: 'plain' })
  })
})

describe('what is wrong is said with what to write instead', () => {
  const cases: [string, () => unknown, RegExp, RegExp][] = [
    ['a key with spaces', () => asset('my orders', { run: body }), /"my orders" is not an asset key/, /'my_orders'/],
    ['a key that is not text', () => loose(asset)(7, { run: body }), /7 is not an asset key/, /mart\/revenue/],
    ['no options', () => loose(asset)('a'), /asset a needs options/, /asset\('a', \{/],
    ['no body', () => loose(asset)('a', {}), /asset a needs a body/, /run: \(\) => value/],
    [
      'a misspelled option',
      () => loose(asset)('a', { run: body, timout: '1m' }),
      /asset a: unknown option `timout`/,
      /timeout/,
    ],
    [
      'both run and sql',
      () => loose(table)('a', { schema, run: body, sql: () => sql`` }),
      /both run and sql/,
      /Keep one of them/,
    ],
    ['a table without schema', () => loose(table)('a', { run: body }), /table a needs a schema/, /z\.object/],
    ['a source without uri', () => loose(source)('a', { schema }), /source a needs a uri/, /parquet/],
    ['an empty command', () => command('a', { run: [] }), /command a needs a command line in `run`/, /'python3'/],
    [
      'a NUL in a command line',
      () => command('a', { run: ['sh', '-c', 'a\0b'] }),
      /`run` of a contains a NUL character/,
      /Remove the character/,
    ],
    ['a NUL in a variable', () => command('a', { run: ['x'], env: { A: '\0' } }), /`env` of a contains a NUL/, /Remove/],
    [
      'a duration in words',
      () => loose(asset)('a', { run: body, timeout: '5 minutes' }),
      /`timeout` of a must be a duration, not "5 minutes"/,
      /'5m'/,
    ],
    [
      'an unknown option of retries',
      () => loose(asset)('a', { run: body, retry: { attempts: 2, jiter: true } }),
      /`retry` of a: unknown option `jiter`/,
      /Did you mean `/,
    ],
    [
      'an unknown option of freshness',
      () => loose(asset)('a', { run: body, freshness: { within: '1h', wran: '2h' } }),
      /`freshness` of a: unknown option `wran`/,
      /Did you mean `/,
    ],
    [
      'an unknown option of a backfill',
      () => loose(asset)('a', { run: body, backfill: { chunk: 1, chunks: 2 } }),
      /`backfill` of a: unknown option `chunks`/,
      /Did you mean `/,
    ],
    [
      'an unknown option of partitions',
      () => loose(daily)({ start: '2025-01-01', timezon: 'UTC' }),
      /daily\(\): unknown option `timezon`/,
      /Did you mean `/,
    ],
    [
      'an unknown option of an IO',
      () => loose(io)('x', { write: body, read: body, reed: body }),
      /IO x: unknown option `reed`/,
      /Did you mean `/,
    ],
    [
      'an unknown bound of rows',
      () => loose(check.rowCount)({ mn: 1 }),
      /check\.rowCount\(\): unknown option `mn`/,
      /Did you mean `/,
    ],
    ['a duration without unit', () => loose(durationMs)(30, 'x'), /x must be a duration, not 30/, /'30s'/],
    [
      'an asset that is always new in words',
      () => loose(asset)('a', { run: body, alwaysNew: 'yes' }),
      /`alwaysNew` of a cannot be "yes"/,
      /Write true/,
    ],
    [
      'a deadline in an offset',
      () => asset('a', { run: body, freshness: { by: '07:30', timezone: '+01:00' } }),
      /"\+01:00" is an offset/,
      /Europe\/Paris/,
    ],
    [
      'files outside of the project',
      () => command('a', { run: ['x'], files: ['lib', '../x.py'] }),
      /`files` of a: "\.\.\/x\.py" is outside the project folder/,
      /ml\/\*\*/,
    ],
    [
      'files and a version',
      () => command('a', { run: ['x'], files: ['lib'], version: '2' }),
      /command a has both `files` and `version`: the version would replace the hash of the files/,
      /Write an array|Remove one/,
    ],
    [
      'files that are no list',
      () => loose(command)('a', { run: ['x'], files: 'lib' }),
      /`files` of a cannot be "lib"/,
      /Write an array|Remove one/,
    ],
    ['no attempts', () => asset('a', { run: body, retry: 0 }), /`retry` of a cannot be 0/, /1 to 1000/],
    ['a wrong backoff', () => loose(asset)('a', { run: body, retry: { attempts: 2, backoff: 'slow' } }), /"slow"/, /'fixed'/],
    [
      'a wrong pause',
      () => loose(asset)('a', { run: body, retry: { attempts: 2, initial: '2' } }),
      /`retry\.initial` of a must be a duration, not "2"/,
      /'30s'/,
    ],
    [
      'an invalid dependency',
      () => loose(asset)('a', { run: body, deps: [undefined] }),
      /undefined is not an asset or an asset key, in `deps` of a/,
      /joined by/,
    ],
    [
      'dependencies that are no list',
      () => loose(asset)('a', { run: body, deps: 'b' }),
      /`deps` of a must be an array, not "b"/,
      /Write deps: /,
    ],
    [
      'an input by its key',
      () => loose(asset)('a', { run: body, inputs: { b: 'b' } }),
      /input `b` of a must be an asset, not "b"/,
      /Import the asset/,
    ],
    [
      'a command as input',
      () => loose(asset)('a', { run: body, inputs: { c: command('c', { run: ['x'] }) } }),
      /input `c` of a is a command: it stores its own data, so there is no value to load/,
      /deps/,
    ],
    [
      'an input called log',
      () => loose(asset)('a', { run: body, inputs: { log: plain } }),
      /a has an input called `log`, which is a reserved name/,
      /another/,
    ],
    [
      'an invalid resource',
      () => loose(asset)('a', { run: body, resources: { db: {} } }),
      /resource `db` of a cannot be \{\}/,
      /resource\(\)/,
    ],
    [
      'an invalid check',
      () => loose(asset)('a', { run: body, checks: { c: true } }),
      /check "c" of a must be a function or a check, not true/,
      /check\.unique/,
    ],
    [
      'invalid partitions',
      () => loose(asset)('a', { run: body, partitions: 'daily' }),
      /`partitions` of a cannot be "daily"/,
      /daily\(/,
    ],
    [
      'an owner that is not a list',
      () => loose(asset)('a', { run: body, owners: 'me' }),
      /`owners` of a cannot be "me"/,
      /owners: \['data'\]/,
    ],
    [
      'tags that are no texts',
      () => loose(asset)('a', { run: body, tags: { x: 1 } }),
      /`tags` of a cannot be \{"x":1\}/,
      /team/,
    ],
    ['a priority out of range', () => asset('a', { run: body, priority: 5_000 }), /`priority` of a cannot be 5000/, /1000/],
    [
      'a chunk of nothing',
      () => asset('a', { run: body, backfill: { chunk: -1 } }),
      /`backfill` of a cannot be \{"chunk":-1\}/,
      /chunk: 10/,
    ],
    ['an unknown overlap', () => loose(asset)('a', { run: body, overlap: 'wait' }), /"wait"/, /'queue'/],
    [
      'freshness without a time',
      () => loose(asset)('a', { run: body, freshness: { by: '7' } }),
      /`freshness` of a cannot be \{"by":"7"\}/,
      /'07:30'/,
    ],
    [
      'an invalid automation',
      () => loose(asset)('a', { run: body, automation: 'eager' }),
      /`automation` of a cannot be "eager"/,
      /when\.eager/,
    ],
    ['an invalid former key', () => asset('a', { run: body, renamedFrom: ' ' }), /not the former key of a/, /joined by/],
    [
      'an invalid metadata schema',
      () => loose(asset)('a', { run: body, metadata: {} }),
      /`metadata` of a must be a schema/,
      /z\.object/,
    ],
    ['an invalid io', () => loose(asset)('a', { run: body, io: 'pickle' }), /`io` of a cannot be "pickle"/, /io\('image'/],
    [
      'an io called json',
      () => io('json', { write: () => '', read: () => 1 }),
      /the IO name json is reserved/,
      /Choose a name other/,
    ],
    ['an io that cannot read', () => loose(io)('x', { write: body }), /IO x needs `write` and `read`/, /read: /],
    ['an offset of unpartitioned', () => plain.offset(-1), /plain has no partitions/, /without a mapping|time partitions/],
    ['an offset in words', () => loose(orders.offset)('1'), /needs a whole number/, /offset\(-1\)/],
    ['an offset of what is no time', () => cities.offset(-1), /cities has no time windows/, /\.map\(/],
    [
      'windows the wrong way round',
      () => orders.window({ from: 0, to: -6 }),
      /raw\/orders\.window\(\{"from":0,"to":-6\}\) needs two whole numbers, the smaller one first/,
      /from: -6, to: 0/,
    ],
    [
      'an invalid partition',
      () => loose(cities.at)('rome'),
      /"rome" is not a partition of cities/,
      /one of its partition keys|at least one/,
    ],
    [
      'no partition at all',
      () => cities.at([]),
      /cities\.at\(\[\]\) names no partition/,
      /one of its partition keys|at least one/,
    ],
    [
      'a map to what is none',
      () => loose(cities.map)({ eu: 'rome' }),
      /"rome" is not a partition/,
      /one of its partition keys|at least one/,
    ],
    ['a map of nothing', () => cities.map({}), /maps nothing/, /boston/],
    ['its own future', () => previous(-1), /previous\(-1\)/, /previous\(7\)/],
    [
      'a past without partitions',
      () => asset('a', { run: body, deps: [previous()] }),
      /a has no partitions/,
      /without a mapping|time partitions/,
    ],
    [
      'a past without time',
      () => asset('a', { run: body, partitions: keys(['x']), deps: [previous()] }),
      /a has no time windows/,
      /\.all/,
    ],
    [
      'a past in two kinds of time',
      () => asset('a', { run: body, partitions: multi({ day, shipped: day }), deps: [previous()] }),
      /a has several time dimensions: day, shipped/,
      /previous\(1, 'day'\)/,
    ],
    ['ranges of nothing', () => loose(ranges)('daily'), /ranges\("daily"\)/, /daily\(/],
    ['ranges of none at a time', () => ranges(day, { atMost: 0 }), /`atMost` of ranges\(\) cannot be 0/, /10000/],
    [
      'ranges without time',
      () => ranges(multi({ a: keys(['x']), b: keys(['y']) })),
      /ranges\(\) needs exactly one time dimension, not 0/,
      /Remove ranges/,
    ],
    [
      'ranges inside of dimensions',
      () => multi({ day: ranges(day), b: keys(['y']) }),
      /day is not a dimension/,
      /around multi/,
    ],
    [
      'a table of ranges',
      () => table('a', { schema, partitions: ranges(day), run: () => [] }),
      /table a uses ranges\(\), but Servo cannot split a stored range by partition/,
      /command\(\)/,
    ],
    ['an unknown dimension', () => loose(orders.all)('country'), /no dimension "country"/, /day, region/],
    [
      'a partition of unpartitioned',
      () => loose(run)(plain, { partition: 'x' }),
      /plain has no partitions/,
      /Remove `partition`/,
    ],
    ['a run without partition', () => loose(run)(orders), /undefined is not a partition of raw\/orders/, /partition/],
    [
      'an unknown partition',
      () => loose(run)(orders, { partition: { day: '2025-02-30', region: 'mars' } }),
      /day: .*region: /,
      /key/,
    ],
    [
      'a cron expression of three fields',
      () => schedule('s', { cron: '* * *', select: plain }),
      /schedule s: .*3 fields/,
      /minute, hour, day of month/,
    ],
    [
      'a schedule that ends before it starts',
      () => schedule('s', { cron: '@daily', select: plain, start: '2025-02-01T00:00:00Z', end: '2025-01-01T00:00:00Z' }),
      /schedule s ends before it starts/,
      /time after `start`|most missed ticks/,
    ],
    [
      'a schedule of nothing',
      () => schedule('s', { cron: '@daily', select: [] }),
      /schedule s has an empty `select`/,
      /select: /,
    ],
    [
      'an unknown zone',
      () => schedule('s', { cron: '@daily', timezone: 'Paris', select: plain }),
      /"Paris" is not a time zone/,
      /Europe/,
    ],
    [
      'a catch-up of none',
      () => schedule('s', { cron: '@daily', select: plain, catchup: { window: '1h', max: -1 } }),
      /`catchup\.max` of s must be a whole number from 0 to 10000, not -1/,
      /time after `start`|most missed ticks/,
    ],
    ['a sensor without a source', () => loose(sensor.push)('s', { on: body }), /sensor s needs a source/, /webhook/],
    [
      'a sensor that never looks',
      () => loose(sensor.poll)('s', { cursor: schema, poll: body }),
      /`every` of sensor s must be a duration, not undefined/,
      /'30s'/,
    ],
    [
      'a webhook that nobody signs',
      () => loose(webhook)({ path: 'x', verify: true, schema }),
      /`verify` of webhook x cannot be true/,
      /'standard'/,
    ],
    ['a resource that cannot be opened', () => loose(resource)('db', {}), /resource db needs `open`/, /open: /],
    ['a name with a slash', () => resource('a/b', { open: body }), /"a\/b" is not a valid name for a resource/, /letters/],
    ['an invalid condition', () => loose(when.eager().and)(1), /1 is not a condition/, /when\.eager/],
    ['a check of no column', () => check.unique(), /check\.unique\(\) needs column names/, /'id'/],
    ['bounds that cross', () => check.rowCount({ min: 2, max: 1 }), /between 2 and 1/, /min: 1/],
    ['a bucket without scheme', () => s3('bucket'), /s3\("bucket"\) must name a bucket/, /s3:\/\//],
    ['the bucket of another cloud', () => gcs('s3://bucket'), /gcs\("s3:\/\/bucket"\) must name a bucket/, /gs:\/\//],
    ['a folder without name', () => local(''), /local\(""\) must name a folder/, /\.servo/],
    ['no concurrency', () => inProcess({ concurrency: 0 }), /`concurrency` cannot be 0/, /8/],
    ['a queue without address', () => loose(cloudTasks)({ project: 'x' }), /cloudTasks\(\) needs `location`/, /serviceUrl/],
    [
      'a config without folders',
      () => loose(defineConfig)({ project: 'x' }),
      /`dirs` of the config cannot be undefined/,
      /dirs: /,
    ],
    [
      'a place for this machine that it would not use',
      () => defineConfig({ ...project, environments: { dev: { storage: local('/data'), queue: inProcess() } } }),
      /the environment `dev` is this machine: it stores everything in \.servo and runs assets itself/,
      /local\('\.servo'\)/,
    ],
    [
      'a queue for this machine that it would not use',
      () => defineConfig({ ...project, environments: { dev: { storage: local('./.servo'), queue: postgres('') } } }),
      /the environment `dev` is this machine: it stores everything in \.servo and runs assets itself/,
      /inProcess\(\)/,
    ],
    ['a time to wait in words', () => loose((after: never) => new RetryAfter(after))('soon'), /"soon"/, /'30s'/],
  ]

  test.each(cases)('%s', (_, write, message, hint) => {
    expect(write).toThrow(
      expect.objectContaining({ kind: 'invalid', message: expect.stringMatching(message), hint: expect.stringMatching(hint) }),
    )
  })
})

test.each<[object, RegExp]>([
  [{ timeout: '0s' }, /^`timeout` of a is out of range: "0s"/],
  [{ freshness: { within: '0h' } }, /^`freshness.within` of a is out of range: "0h"/],
  [{ retry: { attempts: 2, jitter: 'yes' } }, /^`retry.jitter` of a cannot be "yes"/],
  [{ retry: { attempts: 2, on: 'busy' } }, /^`retry.on` of a must be a function, not "busy"/],
  [{ checks: { some: { test: body, severity: 'info' } } }, /^check "some" of a must be a function or a check/],
])('%j is refused where it is written', (options, message) => {
  expect(() => loose(asset)('a', { run: body, ...options })).toThrow(message)
})
