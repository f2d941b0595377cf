import { describe, expect, test } from 'vitest'
import { againKey, type RunOfKey, requestByKey } from './again.ts'
import type { RunState } from './runs.table.ts'
import { runKeyBelongsTo } from './trigger.ts'

const request = {
  run_key: 'user:nightly',
  request_fingerprint: 'f',
  source: { type: 'manual', user_id: 'ada', request_id: 'r' },
} as const

/** Runs by key, each named after its key. */
const known = (states: Readonly<Record<string, RunState>>, request_fingerprint = 'f') => {
  return (key: string): RunOfKey | undefined => {
    const state = states[key]
    return state && { run_id: `run of ${key}`, state, request_fingerprint }
  }
}

describe('[A29] asking for a run by key', () => {
  test.each<RunState | undefined>([undefined, 'PENDING', 'RUNNING', 'SUCCEEDED', 'CANCELLED'])(
    'is the same request while its run is %s',
    (state) => {
      expect(requestByKey(request, known(state ? { 'user:nightly': state } : {}))).toEqual(request)
    },
  )

  test('is a rerun with a key of its own when its run failed, and the same rerun however often one asks', () => {
    const first = known({ 'user:nightly': 'FAILED' })
    const again = requestByKey(request, first)
    const run_id = 'run of user:nightly'
    expect(again).toMatchObject({
      run_key: againKey('user:nightly', run_id),
      source: { type: 'rerun', run_id, asked_by: null },
    })
    expect(runKeyBelongsTo(again.run_key, again.source)).toBe(true)
    expect(requestByKey(request, known({ 'user:nightly': 'FAILED', [again.run_key]: 'RUNNING' }))).toEqual(again)
  })

  test('is a rerun of the rerun when that failed too', () => {
    const once = againKey('user:nightly', 'run of user:nightly')
    const twice = requestByKey(request, known({ 'user:nightly': 'FAILED', [once]: 'FAILED' }))
    expect(twice).toMatchObject({
      run_key: againKey(once, `run of ${once}`),
      source: { type: 'rerun', run_id: `run of ${once}` },
    })
  })

  test('for other work is no rerun, so that it is refused as a conflict', () => {
    expect(requestByKey(request, known({ 'user:nightly': 'FAILED' }, 'other work'))).toEqual(request)
  })
})
