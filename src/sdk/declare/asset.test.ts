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
    ['a key that is no text', () => loose(asset)(7, { run: body }), /7 is not an asset key/, /mart\/revenue/],
    ['no options', () => loose(asset)('a'), /asset a has no options/, /asset\('a', \{/],
    ['no body', () => loose(asset)('a', {}), /asset a has no code/, /run: \(\) => value/],
    ['a misspelled option', () => loose(asset)('a', { run: body, timout: '1m' }), /unknown option timout/, /timeout/],
    ['both run and sql', () => loose(table)('a', { schema, run: body, sql: () => sql`` }), /both run and sql/, /Keep the one/],
    ['a table without schema', () => loose(table)('a', { run: body }), /table a has no schema/, /z\.object/],
    ['a source without uri', () => loose(source)('a', { schema }), /source a has no uri/, /parquet/],
    ['an empty command', () => command('a', { run: [] }), /command a has nothing to run/, /'python'/],
    [
      'a duration in words',
      () => loose(asset)('a', { run: body, timeout: '5 minutes' }),
      /timeout of a is "5 minutes"/,
      /'5m'/,
    ],
    [
      'an unknown option of retries',
      () => loose(asset)('a', { run: body, retry: { attempts: 2, jiter: true } }),
      /retry of a: unknown option jiter/,
      /Did you mean jitter\?/,
    ],
    [
      'an unknown option of freshness',
      () => loose(asset)('a', { run: body, freshness: { within: '1h', wran: '2h' } }),
      /freshness of a: unknown option wran/,
      /Did you mean warn\?/,
    ],
    [
      'an unknown option of a backfill',
      () => loose(asset)('a', { run: body, backfill: { chunk: 1, chunks: 2 } }),
      /backfill of a: unknown option chunks/,
      /Did you mean chunk\?/,
    ],
    [
      'an unknown option of partitions',
      () => loose(daily)({ start: '2025-01-01', timezon: 'UTC' }),
      /daily\(\): unknown option timezon/,
      /Did you mean timezone\?/,
    ],
    [
      'an unknown option of an IO',
      () => loose(io)('x', { write: body, read: body, reed: body }),
      /IO x: unknown option reed/,
      /Did you mean read\?/,
    ],
    ['an unknown bound of rows', () => loose(check.rowCount)({ mn: 1 }), /unknown option mn/, /Did you mean min\?/],
    ['a duration without unit', () => loose(durationMs)(30, 'x'), /x is 30/, /'30s'/],
    [
      'an asset that is always new in words',
      () => loose(asset)('a', { run: body, alwaysNew: 'yes' }),
      /alwaysNew of a is "yes"/,
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
      /files of a names "\.\.\/x\.py", which is not in the project/,
      /ml\/\*\*/,
    ],
    [
      'files and a version',
      () => command('a', { run: ['x'], files: ['lib'], version: '2' }),
      /files and a version/,
      /Leave one/,
    ],
    ['files that are no list', () => loose(command)('a', { run: ['x'], files: 'lib' }), /files of a is "lib"/, /list of texts/],
    ['no attempts', () => asset('a', { run: body, retry: 0 }), /retry of a is 0/, /1 to 1000/],
    ['a wrong backoff', () => loose(asset)('a', { run: body, retry: { attempts: 2, backoff: 'slow' } }), /"slow"/, /'fixed'/],
    [
      'a wrong pause',
      () => loose(asset)('a', { run: body, retry: { attempts: 2, initial: '2' } }),
      /retry.initial of a/,
      /'30s'/,
    ],
    [
      'a dependency that is none',
      () => loose(asset)('a', { run: body, deps: [undefined] }),
      /not an asset or the key/,
      /joined by/,
    ],
    ['dependencies that are no list', () => loose(asset)('a', { run: body, deps: 'b' }), /deps of a is "b"/, /Write a list/],
    [
      'an input by its key',
      () => loose(asset)('a', { run: body, inputs: { b: 'b' } }),
      /input b of a is "b"/,
      /Import the asset/,
    ],
    [
      'a command as input',
      () => loose(asset)('a', { run: body, inputs: { c: command('c', { run: ['x'] }) } }),
      /keeps its own data/,
      /deps/,
    ],
    [
      'an output in a folder',
      () => command('a', { run: ['x'], output: '../rows.csv', schema }),
      /output of a is "..\/rows.csv"/,
      /without a folder/,
    ],
    [
      'an output that cannot be read',
      () => loose(command)('a', { run: ['x'], output: 'rows.xlsx', schema }),
      /"rows.xlsx"/,
      /\.parquet, \.csv or \.ndjson/,
    ],
    ['rows without a schema', () => loose(command)('a', { run: ['x'], output: 'rows.csv' }), /has no schema/, /z\.object/],
    ['a schema without rows', () => loose(command)('a', { run: ['x'], schema }), /no output/, /output: 'rows.csv'/],
    ['checks of no rows', () => loose(command)('a', { run: ['x'], checks: { c: body } }), /has checks/, /Pipes/],
    [
      'a past that is not kept',
      () => command('a', { run: ['x'], partitions: day, inputs: { before: previous() } }),
      /its own past/,
      /output and schema/,
    ],
    [
      'inputs of one variable',
      () => command('a', { run: ['x'], inputs: { rawOrders: plain, raw_orders: plain } }),
      /both be SERVO_INPUT_RAW_ORDERS/,
      /Rename/,
    ],
    [
      'an input that is no variable',
      () => command('a', { run: ['x'], inputs: { é: plain } }),
      /an input called "é"/,
      /letters, digits/,
    ],
    [
      'a variable that is taken',
      () => command('a', { run: ['x'], env: { SERVO_PARTITION: 'x' } }),
      /SERVO_PARTITION, which Servo sets/,
      /another name/,
    ],
    [
      'rows of ranges',
      () => command('a', { run: ['x'], partitions: ranges(day), output: 'rows.csv', schema }),
      /command a is made in ranges/,
      /without output/,
    ],
    ['an input called log', () => loose(asset)('a', { run: body, inputs: { log: plain } }), /an input called log/, /another/],
    [
      'a resource that is none',
      () => loose(asset)('a', { run: body, resources: { db: {} } }),
      /resource db of a/,
      /resource\(\)/,
    ],
    [
      'a check that is none',
      () => loose(asset)('a', { run: body, checks: { c: true } }),
      /check "c" of a is true/,
      /check\.unique/,
    ],
    [
      'partitions that are none',
      () => loose(asset)('a', { run: body, partitions: 'daily' }),
      /partitions of a is "daily"/,
      /daily\(/,
    ],
    [
      'an owner that is no list',
      () => loose(asset)('a', { run: body, owners: 'me' }),
      /owners of a is "me"/,
      /owners: \['data'\]/,
    ],
    ['tags that are no texts', () => loose(asset)('a', { run: body, tags: { x: 1 } }), /tags of a/, /team/],
    ['a priority out of range', () => asset('a', { run: body, priority: 5_000 }), /priority of a is 5000/, /1000/],
    ['a chunk of nothing', () => asset('a', { run: body, backfill: { chunk: -1 } }), /backfill of a/, /chunk: 10/],
    ['an overlap there is not', () => loose(asset)('a', { run: body, overlap: 'wait' }), /"wait"/, /'queue'/],
    ['freshness without a time', () => loose(asset)('a', { run: body, freshness: { by: '7' } }), /freshness of a/, /'07:30'/],
    [
      'an automation that is none',
      () => loose(asset)('a', { run: body, automation: 'eager' }),
      /automation of a/,
      /when\.eager/,
    ],
    ['a former key that is none', () => asset('a', { run: body, renamedFrom: ' ' }), /not the former key of a/, /joined by/],
    ['a metadata schema that is none', () => loose(asset)('a', { run: body, metadata: {} }), /metadata of a/, /z\.object/],
    ['an io that is none', () => loose(asset)('a', { run: body, io: 'pickle' }), /io of a is "pickle"/, /io\('image'/],
    ['an io called json', () => io('json', { write: () => '', read: () => 1 }), /json is how Servo itself/, /another name/],
    ['an io that cannot read', () => loose(io)('x', { write: body }), /IO x cannot/, /read: /],
    ['an offset of unpartitioned', () => plain.offset(-1), /plain has no partitions/, /as it is/],
    ['an offset in words', () => loose(orders.offset)('1'), /needs a whole number/, /offset\(-1\)/],
    ['an offset of what is no time', () => cities.offset(-1), /cities has no windows of time/, /\.map\(/],
    ['windows the wrong way round', () => orders.window({ from: 0, to: -6 }), /the smaller first/, /from: -6, to: 0/],
    ['a partition that is none', () => loose(cities.at)('rome'), /"rome" is not a partition of cities/, /a key/],
    ['no partition at all', () => cities.at([]), /means no partition/, /Name one/],
    ['a map to what is none', () => loose(cities.map)({ eu: 'rome' }), /"rome" is not a partition/, /a key/],
    ['a map of nothing', () => cities.map({}), /maps nothing/, /boston/],
    ['its own future', () => previous(-1), /previous\(-1\)/, /previous\(7\)/],
    ['a past without partitions', () => asset('a', { run: body, deps: [previous()] }), /a has no partitions/, /of time/],
    [
      'a past without time',
      () => asset('a', { run: body, partitions: keys(['x']), deps: [previous()] }),
      /a has no windows/,
      /\.all/,
    ],
    [
      'a past in two kinds of time',
      () => asset('a', { run: body, partitions: multi({ day, shipped: day }), deps: [previous()] }),
      /several dimensions of time: day, shipped/,
      /previous\(1, 'day'\)/,
    ],
    ['ranges of nothing', () => loose(ranges)('daily'), /ranges\("daily"\)/, /daily\(/],
    ['ranges of none at a time', () => ranges(day, { atMost: 0 }), /atMost of ranges\(\) is 0/, /10000/],
    ['ranges without time', () => ranges(multi({ a: keys(['x']), b: keys(['y']) })), /and none is/, /Leave/],
    [
      'ranges inside of dimensions',
      () => multi({ day: ranges(day), b: keys(['y']) }),
      /day is not a dimension/,
      /around multi/,
    ],
    [
      'a table of ranges',
      () => table('a', { schema, partitions: ranges(day), run: () => [] }),
      /table a is made in ranges/,
      /command\(\)/,
    ],
    ['a dimension there is not', () => loose(orders.all)('country'), /no dimension "country"/, /day, region/],
    ['a partition of unpartitioned', () => loose(run)(plain, { partition: 'x' }), /plain has no partitions/, /run\(plain\)/],
    ['a run without partition', () => loose(run)(orders), /undefined is not a partition of raw\/orders/, /partition/],
    [
      'a partition there is not',
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
      /later than start/,
    ],
    ['a schedule of nothing', () => schedule('s', { cron: '@daily', select: [] }), /selects nothing/, /select: /],
    [
      'a zone there is not',
      () => schedule('s', { cron: '@daily', timezone: 'Paris', select: plain }),
      /"Paris" is not a time zone/,
      /Europe/,
    ],
    [
      'a catch-up of none',
      () => schedule('s', { cron: '@daily', select: plain, catchup: { window: '1h', max: -1 } }),
      /catchup.max of s is -1/,
      /how many/,
    ],
    ['a sensor without a source', () => loose(sensor.push)('s', { on: body }), /sensor s has no source/, /webhook/],
    ['a sensor that never looks', () => loose(sensor.poll)('s', { cursor: schema, poll: body }), /every of sensor s/, /'30s'/],
    [
      'a webhook that nobody signs',
      () => loose(webhook)({ path: 'x', verify: true, schema }),
      /verify of webhook x/,
      /'standard'/,
    ],
    ['a resource that cannot be opened', () => loose(resource)('db', {}), /resource db cannot be opened/, /open: /],
    ['a name with a slash', () => resource('a/b', { open: body }), /"a\/b" is not a name/, /letters/],
    ['a condition that is none', () => loose(when.eager().and)(1), /1 is not a condition/, /when\.eager/],
    ['a check of no column', () => check.unique(), /needs names of columns/, /'id'/],
    ['bounds that cross', () => check.rowCount({ min: 2, max: 1 }), /between 2 and 1/, /min: 1/],
    ['a bucket without scheme', () => s3('bucket'), /names no bucket/, /s3:\/\//],
    ['the bucket of another cloud', () => gcs('s3://bucket'), /names no bucket/, /gs:\/\//],
    ['a folder without name', () => local(''), /names no folder/, /\.servo/],
    ['no concurrency', () => inProcess({ concurrency: 0 }), /concurrency is 0/, /8/],
    ['a queue without address', () => loose(cloudTasks)({ project: 'x' }), /no location/, /serviceUrl/],
    ['a config without folders', () => loose(defineConfig)({ project: 'x' }), /dirs of the config/, /dirs: /],
    [
      'a place for this machine that it would not use',
      () => defineConfig({ ...project, environments: { dev: { storage: local('/data'), queue: inProcess() } } }),
      /environment dev is this machine/,
      /local\('\.servo'\)/,
    ],
    [
      'a queue for this machine that it would not use',
      () => defineConfig({ ...project, environments: { dev: { storage: local('./.servo'), queue: postgres('') } } }),
      /environment dev is this machine/,
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
