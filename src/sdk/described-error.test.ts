import { describe, expect, test } from 'vitest'
import { errorLines, messageWithCause } from '../contract/error-detail.ts'
import { describeError, errorOfProgram } from './described-error.ts'
import { invalid } from './invalid.ts'

const root = import.meta.dirname
const described = (thrown: unknown) => describeError(thrown, { root })

function withStack(error: Error, ...frames: string[]): Error {
  error.stack = `${error.name}: ${error.message}\n${frames.map((frame) => `    at ${frame}`).join('\n')}`
  return error
}

describe('an error that code threw', () => {
  test('is reported with the class, also of classes that do not set their name, and the code', () => {
    class HttpError extends Error {
      readonly code = 503
    }
    expect(described(new HttpError('busy'))).toMatchObject({ type: 'HttpError', code: '503', message: 'busy' })
    expect(described(new DOMException('too late', 'TimeoutError'))).toMatchObject({ type: 'TimeoutError' })
    expect(described({ name: 'Odd', message: 'made like one' })).toMatchObject({ type: 'Odd', message: 'made like one' })
    expect(described(Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' })).message).toBe(
      'AggregateError (ECONNREFUSED) without a message',
    )
  })

  test('keeps the frames of its author first, then some of packages, none of Node or Servo', () => {
    const packaged = Array.from({ length: 9 }, (_, i) => `pg${i} (/app/node_modules/pg/lib/a.js:${i + 1}:2)`)
    const error = withStack(
      new Error('no'),
      ...packaged,
      `async load (file:///app/assets/a%20b.ts:3:4)`,
      'node:internal/process/task_queues:105:5',
      `executeAsset (${root}/attempt/execute.ts:10:3)`,
      'new Promise (<anonymous>)',
      '/app/shared/c.ts:7:8',
    )
    expect(describeError(error, { root: '/app/assets' }).stack?.split('\n')).toEqual([
      '    at load (a b.ts:3:4)',
      '    at ../shared/c.ts:7:8',
      '    at pg0 (../node_modules/pg/lib/a.js:1:2)',
      '    at pg1 (../node_modules/pg/lib/a.js:2:2)',
      '    at pg2 (../node_modules/pg/lib/a.js:3:2)',
      '    at pg3 (../node_modules/pg/lib/a.js:4:2)',
    ])
  })

  test('takes no frame from its message, and keeps the stack of another language as it is', () => {
    const message = 'it said:\n    at fake (/app/fake.ts:1:1)'
    expect(describeError(withStack(new Error(message), 'real (/app/real.ts:2:2)'), { root: '/app' }).stack).toBe(
      '    at real (real.ts:2:2)',
    )
    const traceback = 'Traceback (most recent call last):\n  File "s.py", line 4\nValueError: no'
    expect(described(errorOfProgram('ValueError: no', traceback)).stack).toBe(traceback)
  })

  test('without a frame of its author names where the asset is declared', () => {
    const declared = { file: `${root}/assets/a.ts`, line: 3 }
    expect(describeError('text', { root, declared }).stack).toBe('    declared at assets/a.ts:3')
    const ours = withStack(invalid('bad', 'no', 'Do it.'), `executeAsset (${root}/attempt/execute.ts:10:3)`)
    expect(describeError(ours, { root, declared })).toMatchObject({
      message: 'no. Do it.',
      stack: '    declared at assets/a.ts:3',
    })
  })

  test('comes with its causes and the errors of an AggregateError, each once, however they are tangled', () => {
    const inner = new TypeError('inner')
    const outer = new AggregateError([inner, new Error('second', { cause: 'text' })], 'all', { cause: inner })
    inner.cause = outer
    const { causes } = described(outer)
    expect(causes?.map(({ depth, as, type, message }) => [depth, as, type, message.slice(0, 20)])).toEqual([
      [1, 'cause', 'TypeError', 'inner'],
      [1, 'error', 'Error', 'second'],
      [2, 'cause', undefined, 'text'],
    ])
  })

  test('shows a cause that is no Error as JSON, cut to size, without secrets', () => {
    const causeOf = (cause: unknown): string | undefined =>
      describeError(new Error('x', { cause }), { root, redact: (text) => text.replaceAll('hunter2-hunter2', '[redacted]') })
        .causes?.[0]?.message
    expect(causeOf({ code: 42, answer: { status: 'gone' } })).toBe('{"code":42,"answer":{"status":"gone"}}')
    expect(causeOf('the disk is full')).toBe('the disk is full')
    expect(causeOf(503)).toBe('503')
    expect(causeOf({ sent: 'hunter2-hunter2' })).toBe('{"sent":"[redacted]"}')
    // The secret lies across the place where the text is cut.
    expect(causeOf({ sent: `${'x'.repeat(230)}hunter2-hunter2${'y'.repeat(10_000)}` })).toMatch(/^.{230,250}\n…\n.{230,250}$/)
    expect(causeOf({ sent: `${'x'.repeat(230)}hunter2-hunter2${'y'.repeat(10_000)}` })).not.toContain('hunter')
    const round: Record<string, unknown> = {}
    round['self'] = round
    expect(causeOf(round)).toBe('{"self":"[circular]"}')
    const odd = {
      id: 10n,
      seen: new Map([['a', new Set([1])]]),
      when: new Date(0),
      get broken() {
        throw new Error('no')
      },
    }
    expect(causeOf(odd)).toBe('{"id":"10","seen":{"a":[1]},"when":"1970-01-01T00:00:00.000Z","broken":"[unreadable: no]"}')
  })

  test('keeps the innermost of a long chain of causes, and counts those in the middle', () => {
    const chainOf = (length: number, text = ''): Error => {
      let chain = new Error('the root')
      for (let i = 1; i < length; i++) chain = new Error(`${length - i}${text}`, { cause: chain })
      return new Error('top', { cause: chain })
    }
    const shown = (error: Error) => described(error).causes?.map(({ depth, message }) => `${depth} ${message}`.slice(0, 12))
    expect(shown(chainOf(8))?.slice(-2)).toEqual(['7 7', '8 the root'])
    expect(shown(chainOf(10))).toEqual([...[1, 2, 3, 4, 5, 6, 7].map((i) => `${i} ${i}`), '8 … 2 more', '9 the root'])
    expect(messageWithCause('top', described(chainOf(10)))).toBe('top: the root')
    const cause = new Error('no room.', { cause: new Error('ENOSPC: no space left') })
    const chain = described(new Error('The table lags behind.', { cause }))
    expect(messageWithCause('The table lags behind.', chain)).toBe('The table lags behind: no room: ENOSPC: no space left')
    expect(
      errorLines('top', { causes: described(chainOf(10)).causes })
        .filter((line) => !line.includes(' at '))
        .slice(-2),
    ).toEqual([`${'  '.repeat(7)}… 2 more`, `${'  '.repeat(8)}caused by the root`])
    // Long messages leave room for fewer, and never take that of the root.
    expect(shown(chainOf(10, 'x'.repeat(20_000)))?.at(-1)).toBe('9 the root')
    expect(shown(chainOf(10, 'x'.repeat(20_000)))?.at(-2)).toMatch(/^8 … 2 more|^\d … \d more/)
  })

  test('is cut to size, whatever it is', () => {
    let chain = new Error('the first')
    for (let i = 0; i < 100; i++) chain = new Error('long '.repeat(10_000), { cause: chain })
    const crowd = new AggregateError(Array.from({ length: 5_000 }, () => new Error('one')))
    for (const error of [chain, crowd, new Error('x'.repeat(10_000_000)), 'y'.repeat(10_000_000)])
      expect(JSON.stringify(described(error)).length).toBeLessThan(60_000)
  })

  test.each([
    [undefined, 'undefined was thrown'],
    [null, 'null was thrown'],
    ['', '"" was thrown'],
    [404, '404 was thrown'],
    [{ status: 500 }, '{"status":500} was thrown'],
    [Symbol('odd'), 'Symbol(odd) was thrown'],
    [10n, '10 was thrown'],
  ])('%o is no Error, and the text says so', (thrown, text) => {
    expect(described(thrown).message).toMatch(new RegExp(`^${text.replace(/[()[\]{}]/g, '\\$&')} instead of an Error`))
  })

  test('whose message cannot be read still shows where it was thrown', () => {
    const silent = Object.defineProperty(withStack(new TypeError('x'), 'run (/shop/a.ts:3:1)'), 'message', {
      get() {
        throw new Error('do not look')
      },
    })
    expect(described(silent)).toMatchObject({ type: 'TypeError', message: 'TypeError without a message' })
    expect(described(silent).stack).toContain('shop/a.ts:3:1')
    expect(described(new Error('outer', { cause: silent })).causes).toMatchObject([{ message: 'TypeError without a message' }])
  })

  test('may throw again when it is looked at', () => {
    const hostile = new Proxy(
      {},
      {
        get() {
          throw new Error('do not look')
        },
      },
    )
    expect(described(hostile).message).toContain(
      '"[unreadable: do not look]" was thrown instead of an Error. Write throw new Error("what went wrong"), so that the report has a stack.',
    )
    const error = new Error('mine')
    for (const name of ['cause', 'code', 'name', 'stack'])
      Object.defineProperty(error, name, {
        get: () => {
          throw new Error('do not look')
        },
      })
    expect(described(error)).toEqual({ message: 'mine', type: 'Error' })
  })
})

test('people read the last cause in the line of a task, and all of them below', () => {
  const error = new TypeError('fetch failed', { cause: Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }) })
  const { message, ...detail } = describeError(error, { root: '/' })
  const bare = { ...detail, stack: '    at a.ts:1:2', causes: detail.causes?.map(({ stack, ...cause }) => cause) }
  expect(messageWithCause(message, bare)).toBe('fetch failed: connect')
  expect(errorLines(message, bare)).toEqual(['TypeError: fetch failed', '    at a.ts:1:2', 'caused by connect (ECONNREFUSED)'])
})
