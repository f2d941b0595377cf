import { expect, test } from 'vitest'
import type { AssetDefinitionInput } from '../../../src/contract/project-manifest.ts'
import { Led } from '../led.ts'

const asset = (asset_key: string, more: Partial<AssetDefinitionInput> = {}): AssetDefinitionInput => ({
  asset_key,
  kind: 'asset',
  ...more,
})

async function opened() {
  const keys = ['a', 'b', 'c', 'd', 'e']
  const led = await Led.open(
    { assets: keys.map((key) => asset(key, { retry: { max_attempts: 2, initial_ms: 10 } })) },
    {},
    (envelope) =>
      envelope.asset_key === 'c' && envelope.attempt === 1
        ? { result: { outcome: 'FAILED', error: { category: 'user', message: 'no rows', retryable: true } } }
        : {},
  )
  const run = await led.request('all')
  for (let i = 0; i < 5; i++) {
    await led.clock.advance(20)
    await led.server.orchestrator.loop.idle()
  }
  return { led, run, keys }
}

/** All pages, and how many there were. */
async function pages(led: Led, path: string, name: string) {
  const found: Record<string, unknown>[] = []
  let count = 0
  for (let cursor: string | null = ''; cursor !== null; count++) {
    const { body } = await led.get(`${path}${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`)
    found.push(...body[name])
    cursor = body.next_cursor
  }
  return { found, count }
}

test('[X9] the tasks of a run are listed in pages, and each with its attempts and their errors', async () => {
  const { led, run, keys } = await opened()
  const { found, count } = await pages(led, `/runs/${run}/tasks?limit=2`, 'tasks')
  expect([found.map(({ task_key }) => task_key), count]).toEqual([keys, 3])
  expect((await led.get(`/runs/${run}/tasks?asset=c`)).body.tasks).toHaveLength(1)
  expect((await led.get(`/runs/${run}/tasks?status=FAILED`)).body).toEqual({ tasks: [], next_cursor: null })
  const { body } = await led.get(`/runs/${run}/tasks/c`)
  expect(body.task).toMatchObject({ task_key: 'c', state: 'SUCCEEDED', attempt: 2 })
  expect(body.attempts).toMatchObject([
    { attempt: 1, outcome: 'FAILED', error_message: 'no rows' },
    { attempt: 2, outcome: 'SUCCEEDED' },
  ])
  expect((await led.get(`/runs/${run}/tasks/x`)).body).toMatchObject({ status: 404, code: 'no_such_task' })
  expect((await led.get(`/runs/${run}/tasks?status=DONE`)).body).toMatchObject({ status: 400, field: 'status' })
})

test('[X9] output is read in pages, of all attempts or of one, and followed to the end of the run', async () => {
  const { led, run } = await opened()
  const { body } = await led.get(`/runs/${run}`)
  const { logs } = led.server.orchestrator
  for (const { task_key, attempt, attempt_id } of body.attempts) {
    const entries = [1, 2, 3].map((n) => ({
      at: Date.UTC(2026, 0, 1),
      stream: 'stdout',
      text: `${task_key}${attempt}-${n}`,
    }))
    logs.add({ run_id: run, task_key, attempt, attempt_id }, entries as never)
  }
  const { found, count } = await pages(led, `/runs/${run}/logs?limit=4`, 'entries')
  const texts = found.map(({ text }) => text)
  expect([texts.length, count, new Set(texts).size]).toEqual([18, 5, 18])
  expect(texts.slice(0, 3)).toEqual(['a1-1', 'a1-2', 'a1-3'])
  const second = (await led.get(`/runs/${run}/logs?limit=50&task=c&attempt=2`)).body.entries
  expect(second).toMatchObject([{ text: 'c2-1', task_key: 'c', attempt: 2 }, { text: 'c2-2' }, { text: 'c2-3' }])
  expect((await led.get(`/runs/${run}/logs?cursor=zzz`)).body.code).toBe('bad_cursor')
  const followed = await (await led.response(`/runs/${run}/logs?follow=true`)).text()
  expect(
    followed
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).text),
  ).toEqual(texts)
})

test('[X9] declarations are listed as they are on record', async () => {
  const { led, keys } = await opened()
  const { found, count } = await pages(led, '/definitions?limit=3', 'definitions')
  expect([found.map(({ asset_key }) => asset_key), count]).toEqual([keys, 2])
  const one = (await led.get('/assets/b/definition')).body
  expect(one).toEqual(found[1])
  expect(one.definition).toMatchObject({ asset_key: 'b', kind: 'asset' })
  expect((await led.get('/assets/nope/definition')).status).toBe(404)
  expect((await led.get('/definitions?select=b')).body.definitions).toHaveLength(1)
})
