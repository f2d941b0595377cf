import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { ServoError } from '../../lib/error.ts'
import type { AnyAsset } from '../any-asset.ts'
import { asset, command, table } from '../declare/asset.ts'
import { check } from '../declare/check.ts'
import { Fatal, RetryAfter } from '../declare/failure.ts'
import { io } from '../declare/io.ts'
import { resource } from '../declare/resource.ts'
import { sql } from '../declare/sql.ts'
import { type Attempt, executeAsset } from './execute.ts'
import { MemoryValues } from './memory-values.ts'

const logged: string[] = []
const say = (message: string): void => void logged.push(message)
const log = { debug: say, info: say, warn: say, error: say }

const execute = (value: AnyAsset, more: Partial<Attempt> = {}) =>
  executeAsset(value, {
    inputs: {},
    environment: {},
    signal: new AbortController().signal,
    log,
    attempt: 2,
    describing: { root: import.meta.dirname },
    runId: 'run_1',
    store: new MemoryValues(),
    ...more,
  })

const throwing = (error: unknown): AnyAsset =>
  asset('a', {
    run: () => {
      throw error
    },
  })
const schema = z.object({ id: z.string() })

describe('what a body throws', () => {
  test.each([
    ['anything', new Error('x'), { category: 'user', message: 'x', retryable: true }],
    [
      'no error at all',
      'just text',
      {
        category: 'user',
        message: expect.stringContaining(
          '"just text" was thrown instead of an Error. Write throw new Error(text), so that the report has a stack.',
        ),
        retryable: true,
      },
    ],
    ['Fatal', new Fatal('x'), { category: 'fatal', retryable: false }],
    ['RetryAfter', new RetryAfter('30s'), { category: 'user', retryable: true, retry_after_ms: 30_000 }],
    ['storage that is away', new ServoError('unavailable', 'x', 'x'), { category: 'infrastructure', retryable: true }],
    [
      'a mistake in its own code',
      new ServoError('invalid', 'x', 'bad', { hint: 'Do.' }),
      { category: 'invalid', message: 'bad. Do.', retryable: false },
    ],
  ])('says whether to try again: %s', async (_, thrown, error) => {
    const { result, error: original } = await execute(throwing(thrown))
    expect(result).toMatchObject({ outcome: 'FAILED', error })
    expect(original).toBe(thrown)
  })

  test('is tried again only if the retry policy wants it', async () => {
    const on = (error: unknown) => (error as Error).message === 'busy'
    const policy = (message: string) =>
      asset('a', {
        retry: { attempts: 3, on },
        run: () => {
          throw new Error(message)
        },
      })
    expect((await execute(policy('busy'))).result.error?.retryable).toBe(true)
    expect((await execute(policy('broken'))).result.error?.retryable).toBe(false)
  })

  test.each([
    ['a run that was cancelled', new DOMException('stop', 'AbortError'), { outcome: 'CANCELLED' }],
    [
      'time that ran out',
      new DOMException('late', 'TimeoutError'),
      { outcome: 'FAILED', error: { category: 'timeout', retryable: true } },
    ],
  ])('after %s is told as that', async (_, reason, expected) => {
    const abort = new AbortController()
    const started = Promise.withResolvers<void>()
    const waiting = asset('a', {
      run: ({ signal }) => {
        started.resolve()
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('some other error'))))
      },
    })
    const outcome = execute(waiting, { signal: abort.signal })
    await started.promise
    abort.abort(reason)
    expect((await outcome).result).toMatchObject(expected)
  })

  test('a body does not begin once the run is cancelled', async () => {
    const begun: string[] = []
    const late = asset('a', { run: () => void begun.push('a') })
    expect((await execute(late, { signal: AbortSignal.abort() })).result.outcome).toBe('CANCELLED')
    expect(begun).toEqual([])
  })

  test('nothing is written once the run is cancelled, even if the body goes on', async () => {
    const abort = new AbortController()
    const deaf = asset('a', {
      run: () => {
        abort.abort()
        return 1
      },
    })
    const outcome = await execute(deaf, { signal: abort.signal })
    expect(outcome.result).toMatchObject({ outcome: 'CANCELLED' })
    expect(outcome.result.output?.path).toBeUndefined()
  })
})

describe('what a body returns', () => {
  test('is kept as JSON and can be loaded by others', async () => {
    const store = new MemoryValues()
    const first = asset('first', { run: () => ({ b: 1, a: [null, 'x'] }) })
    const { result } = await execute(first, { store })
    expect(result).toMatchObject({ outcome: 'SUCCEEDED', output: { path: 'memory/1' } })
    const second = asset('second', { inputs: { first }, run: ({ first, attempt, runId }) => [first.a, attempt, runId] })
    const values = [{ partition_key: '', materialization_id: 'm', path: result.output?.path }]
    const ref = { asset_key: 'first', io: 'json', many: false, values }
    expect((await execute(second, { store, inputs: { first: ref } })).value).toEqual([[null, 'x'], 2, 'run_1'])
  })

  test.each([
    ['a Date', { at: new Date(0) }],
    ['a Map', new Map()],
    ['NaN', Number.NaN],
    ['a function', () => 1],
  ])('is refused when it would come back as something else: %s', async (_, value) => {
    expect((await execute(asset('a', { run: () => value }))).result.error).toMatchObject({
      category: 'invalid',
      retryable: false,
      message: expect.stringContaining('give the asset an io'),
    })
  })

  test('may be nothing: then it keeps its own data, and nobody can load it', async () => {
    const keeper = asset('keeper', { run: () => {} })
    const { result } = await execute(keeper)
    expect(result).toMatchObject({ outcome: 'SUCCEEDED', output: { path: undefined } })
    const loading = asset('loading', { inputs: { keeper } as never, run: () => 1 })
    const ref = { asset_key: 'keeper', io: 'json', many: false, values: [{ partition_key: '', materialization_id: 'm' }] }
    expect((await execute(loading, { inputs: { keeper: ref } })).result.error?.message).toMatch(
      /keeper has no value to load: it returned nothing, or was materialized outside Servo and only reported\. Run kee/,
    )
  })

  test('goes through the io of the asset, and comes back through it', async () => {
    const store = new MemoryValues()
    const upper = io<Set<string>>('set', {
      write: (set) => [...set].join(),
      read: (bytes) => new Set(new TextDecoder().decode(bytes).split(',')),
    })
    const first = asset('first', { io: upper, run: () => new Set(['a', 'b']) })
    const { result } = await execute(first, { store })
    const second = asset('second', { inputs: { first }, run: ({ first }) => first.has('b') })
    const values = [{ partition_key: '', materialization_id: 'm', path: result.output?.path }]
    expect(
      (await execute(second, { store, inputs: { first: { asset_key: 'first', io: 'set', many: false, values } } })).value,
    ).toBe(true)
  })

  test('must be rows of the schema, for a table', async () => {
    const rows = table('t', { schema, run: () => [{ id: 'a' }, { id: 2 } as never] })
    const { result } = await execute(rows)
    expect(result).toMatchObject({ outcome: 'FAILED', error: { category: 'invalid', retryable: true } })
    expect(result.error?.message).toMatch(
      /^row 2 of t does not match its schema: id: Invalid input: expected string, received number\. Fix the row, or cha/,
    )
    const none = table('t', { schema, run: () => 7 as never })
    expect((await execute(none)).result.error).toMatchObject({ category: 'invalid', retryable: false })
  })

  test('becomes what the schema makes of it, one row at a time', async () => {
    const made: string[] = []
    async function* generate() {
      for (const id of ['a', 'b']) {
        made.push(id)
        yield { id, extra: 1 }
      }
    }
    const { value, result } = await execute(
      table('t', { schema: schema.transform(({ id }) => ({ id: id.toUpperCase() })), run: generate }),
    )
    expect(await (value as { rows(): Promise<unknown> }).rows()).toEqual([{ id: 'A' }, { id: 'B' }])
    expect(result.output?.rows).toBe(2)
  })

  test('must come back as it was, also in columns of which the schema does not tell what they hold', async () => {
    const made = z.string().transform((text) => new Date(text))
    const unclear = table('t', { schema: z.object({ at: made }), run: () => [{ at: '2025-01-15' as never }] })
    expect((await execute(unclear)).result.error?.message).toMatch(
      /^at of row 1 of t cannot be stored: an instance of Date cannot be written as JSON\. Let the schema end with what/,
    )
    const clear = table('t', { schema: z.object({ at: made.pipe(z.date()) }), run: () => [{ at: '2025-01-15' as never }] })
    expect((await execute(clear)).result.outcome).toBe('SUCCEEDED')
  })

  test('of a query must be a query', async () => {
    const wrong = table('t', { schema, sql: () => 'select 1' as never })
    expect((await execute(wrong)).result.error?.message).toMatch(/Return sql`select …`/)
    const broken = table('t', { schema, sql: () => sql`selekt 1` })
    expect((await execute(broken)).result.error).toMatchObject({ category: 'invalid', retryable: false })
  })

  test('is not asked of a command, which the worker runs', async () => {
    expect((await execute(command('c', { run: ['true'] }))).result.error?.message).toMatch(/c has no body to run/)
  })
})

describe('metadata', () => {
  const facts = (given: object, more = {}) =>
    asset('a', {
      ...more,
      run: ({ metadata }) => {
        metadata({ first: 1 } as never)
        metadata(given as never)
        return 1
      },
    })

  test('is gathered over all calls, and never fails an attempt for being odd', async () => {
    const circle: Record<string, unknown> = {}
    circle['self'] = circle
    const { result } = await execute(
      facts({ big: 1n, when: new Date(0), circle, none: undefined, ratio: [Number.NaN], half: 'a\ud800' }),
    )
    expect(result.output?.metadata).toEqual({
      first: 1,
      big: '1',
      when: '1970-01-01T00:00:00.000Z',
      circle: { self: '[circular]' },
      none: null,
      ratio: ['NaN'],
      half: 'a\ufffd',
    })
  })

  test('must fit its schema, if it has one', async () => {
    const metadata = z.object({ first: z.number(), rows: z.number() })
    expect((await execute(facts({ rows: 2 }, { metadata }))).result.outcome).toBe('SUCCEEDED')
    expect((await execute(facts({ rows: '2' }, { metadata }))).result.error?.message).toMatch(
      /^metadata of a does not match its schema: rows: Invalid input: expected number, received string\. Fix the call o/,
    )
  })

  test('of a body that threw is kept', async () => {
    const failing = asset('a', {
      run: ({ metadata }) => {
        metadata({ rows: 12 })
        throw new Error('x')
      },
    })
    expect((await execute(failing)).result.output?.metadata).toEqual({ rows: 12 })
  })
})

describe('the version of the data', () => {
  const versionOf = async (...versions: unknown[]) => {
    const made = asset('a', {
      run: ({ dataVersion }) => {
        for (const version of versions) dataVersion(version as string)
      },
    })
    const { output, error } = (await execute(made)).result
    return error?.message ?? output?.data_version
  }

  test('[P16] is what the body calls it last, and there is none for data that it keeps itself', async () => {
    expect(await versionOf()).toBeUndefined()
    expect(await versionOf('etag-1', 'etag-2')).toBe('etag-2')
    for (const wrong of ['', 7, undefined, 'x'.repeat(513)])
      expect(await versionOf(wrong)).toMatch(/^a reported .* as its data version\. .*a string of 1 to 512 characters/)
  })
})

describe('checks', () => {
  test('that fail with severity error fail the attempt; those that only warn do not', async () => {
    const checks = { 'has rows': check.rowCount({ min: 1 }), 'has many': check.warn(check.rowCount({ min: 10 })) }
    const passes = await execute(table('t', { schema, checks, run: () => [{ id: 'a' }] }))
    expect(passes.result).toMatchObject({
      outcome: 'SUCCEEDED',
      output: {
        checks: [
          { name: 'has rows', ok: true, severity: 'error', metadata: { rows: 1 } },
          { name: 'has many', ok: false, severity: 'warn', metadata: { rows: 1 } },
        ],
      },
    })
    const fails = await execute(table('t', { schema, checks, run: () => [] }))
    expect(fails.result).toMatchObject({ outcome: 'FAILED', error: { category: 'invalid', retryable: true } })
    expect(fails.result.error?.message).toMatch(
      /^checks of t failed: has rows \(0 rows, at least 1 expected\)\. Fix the data, or the check\./,
    )
  })

  test('that throw have failed, and the others are still asked', async () => {
    const { result } = await execute(
      asset('a', {
        run: () => 1,
        checks: {
          broken: () => {
            throw new Error('no table')
          },
          small: (value) => ({ ok: value < 2, value }),
        },
      }),
    )
    expect(result.output?.checks).toEqual([
      { name: 'broken', ok: false, severity: 'error', metadata: { error: 'no table' } },
      { name: 'small', ok: true, severity: 'error', metadata: { value: 1 } },
    ])
  })

  test('that throw leave what they threw as the cause of the error, with its own causes', async () => {
    const helper = (): boolean => {
      throw new TypeError('helper broke', { cause: new RangeError('no such column') })
    }
    const one = await execute(asset('a', { run: () => 1, checks: { broken: () => helper() } }))
    expect(one.result.error?.causes).toMatchObject([
      { depth: 1, as: 'cause', type: 'TypeError', message: 'helper broke' },
      { depth: 2, as: 'cause', type: 'RangeError', message: 'no such column' },
    ])
    const two = await execute(asset('a', { run: () => 1, checks: { broken: () => helper(), other: () => helper() } }))
    expect(two.result.error?.causes?.map(({ as, type }) => [as, type])).toEqual([
      ['cause', 'AggregateError'],
      ['error', 'TypeError'],
      ['cause', 'RangeError'],
      ['error', 'TypeError'],
      ['cause', 'RangeError'],
    ])
  })
})

describe('a resource', () => {
  const config = z.object({ url: z.url(), apiToken: z.string(), port: z.coerce.number().default(80) })

  test('is opened with what the environment says and closed when the attempt has ended, however it did', async () => {
    const seen: unknown[] = []
    const shop = resource('shop-api', {
      config,
      open: (given) => {
        seen.push(given)
        return { given }
      },
      close: () => void seen.push('closed'),
    })
    const environment = { SERVO_SHOP_API_URL: 'https://shop.example', SERVO_SHOP_API_API_TOKEN: 't' }
    const failing = asset('a', {
      resources: { shop },
      run: ({ resources }) => {
        throw new Error(resources.shop.given.url)
      },
    })
    expect((await execute(failing, { environment })).result.error?.message).toBe('https://shop.example')
    expect(seen).toEqual([{ url: 'https://shop.example', apiToken: 't', port: 80 }, 'closed'])
  })

  test('without its variables names them', async () => {
    const shop = resource('shop-api', { config, open: (given) => given })
    const using = asset('a', { resources: { shop }, run: () => 1 })
    expect((await execute(using)).result.error).toMatchObject({
      category: 'invalid',
      retryable: false,
      message: expect.stringContaining('resource shop-api needs SERVO_SHOP_API_URL, SERVO_SHOP_API_API_TOKEN'),
    })
    const environment = { SERVO_SHOP_API_URL: 'nonsense', SERVO_SHOP_API_API_TOKEN: 't' }
    expect((await execute(using, { environment })).result.error?.message).toMatch(
      /resource shop-api is misconfigured: url: Invalid URL\. Check SERVO_SHOP_API_URL\./,
    )
  })

  test('that does not close well costs a warning, not the value', async () => {
    const leaky = resource('leaky', {
      open: () => 1,
      close: () => {
        throw new Error('stuck')
      },
    })
    expect((await execute(asset('a', { resources: { leaky }, run: () => 1 }))).result.outcome).toBe('SUCCEEDED')
    expect(logged.at(-1)).toBe('closing leaky failed: stuck')
  })
})
