import { describe, expect, test } from 'vitest'
import { type ErrorKind, ServoError } from '../lib/error.ts'
import { problemOf, problemResponse } from './problem.ts'

describe('an error becomes a problem', () => {
  test.each<[ErrorKind, number]>([
    ['invalid', 400],
    ['not_found', 404],
    ['conflict', 409],
    ['unavailable', 503],
    ['corrupt', 500],
    ['bug', 500],
  ])('of kind %s with status %i', (kind, status) => {
    const problem = problemOf(new ServoError(kind, 'some_code', 'what happened', { hint: 'what to do' }))
    expect(problem).toMatchObject({ status, code: 'some_code', detail: 'what happened', hint: 'what to do' })
    expect(problem.title).toBeTruthy()
  })

  test.each([
    ['unauthenticated', 401],
    ['token_expired', 401],
    ['forbidden', 403],
    ['wrong_attempt', 403],
    ['body_too_large', 413],
    ['unsupported_media_type', 415],
  ])('with a more exact status where HTTP has one: %s is %i', (code, status) => {
    expect(problemOf(new ServoError('invalid', code, ''))).toMatchObject({ status, title: expect.any(String) })
  })

  test('that says when to ask again, if what we need is away', async () => {
    const away = problemResponse(new ServoError('unavailable', 'disk_full', 'the disk is full', { hint: 'Make room.' }))
    expect([away.status, away.headers.get('retry-after')]).toEqual([503, '1'])
    expect(away.headers.get('content-type')).toBe('application/problem+json')
    expect(await away.json()).toMatchObject({ code: 'disk_full', detail: 'the disk is full', hint: 'Make room.' })
    expect(problemResponse(new ServoError('conflict', 'taken', '')).headers.has('retry-after')).toBe(false)
  })

  test('that tells what was expected and what is, what is and what was asked for', () => {
    const facts = { expected: 3, actual: 4, current: 'removed', requested: 'paused' }
    expect(problemOf(new ServoError('conflict', 'state_changed', '', { facts }))).toMatchObject(facts)
    const odd = problemOf(new ServoError('conflict', 'state_changed', '', { facts: { expected: 'secret', toString: 1 } }))
    expect(Object.keys(odd)).toEqual(['type', 'title', 'status', 'detail', 'code'])
  })

  test('that names the field, and leaves all other facts inside', async () => {
    const error = new ServoError('invalid', 'bad_body', 'capacity: too small', { facts: { field: 'capacity', path: 'secret' } })
    const response = problemResponse(error)
    expect(response.headers.get('content-type')).toBe('application/problem+json')
    expect(await response.json()).toEqual({
      type: 'urn:servo:problem:bad_body',
      title: 'Invalid request',
      status: 400,
      detail: 'capacity: too small',
      code: 'bad_body',
      field: 'capacity',
    })
  })
})
