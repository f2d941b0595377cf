import { afterAll, beforeAll, expect, test } from 'vitest'
import type { WireEvent } from '../../../src/api/events/event-contract.ts'
import { TestProject } from '../support/project.ts'
import type { Servo } from '../support/servo.ts'

let project: TestProject
let server: Servo
beforeAll(async () => {
  project = new TestProject({
    'assets/a.ts': `
import { asset, daily } from 'servo-flow'
export const days = asset('days', { partitions: daily({ start: '2025-01-01', end: '2025-03-01' }), run: ({ partition }) => partition.key })
`,
  })
  server = await project.dev()
}, 60_000)
afterAll(() => project.end())

const ask = async (method: string, path: string, body?: object, headers: Record<string, string> = {}): Promise<Response> =>
  await fetch(`${server.url}/api/v1/orchestration${path}`, {
    method,
    headers: { authorization: `Bearer ${project.token}`, 'content-type': 'application/json', ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })

const create = async (end: string): Promise<[number, string, string | null]> => {
  const body = { select: ['days'], partitions: { type: 'range', start: '2025-01-01', end } }
  const response = await ask('POST', '/backfills', body, { 'idempotency-key': 'january' })
  return [response.status, await response.text(), response.headers.get('idempotency-replayed')]
}

/** Follows until an event is there, and returns all that came. */
async function followed(path: string, isLast: (event: WireEvent) => boolean, seen?: string): Promise<WireEvent[]> {
  const hangUp = new AbortController()
  const response = await fetch(`${server.url}/api/v1/orchestration${path}`, {
    headers: { authorization: `Bearer ${project.token}`, ...(seen !== undefined && { 'last-event-id': seen }) },
    signal: hangUp.signal,
  })
  const events: WireEvent[] = []
  let text = ''
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString()
    const frames = text.split('\n\n')
    text = frames.pop() ?? ''
    for (const frame of frames) {
      const data = /^data: (.*)$/m.exec(frame)?.[1]
      if (data !== undefined) events.push(JSON.parse(data))
    }
    if (events.some(isLast)) break
  }
  hangUp.abort()
  return events
}

test('[Y1] fifty identical creates at once are one backfill with one answer, after a kill and a restart too; [X2] events go on from where a follower was', async () => {
  const isEnd = (event: WireEvent): boolean =>
    event.event_type === 'BackfillStateChanged' && event.payload['to_state'] === 'SUCCEEDED'
  const following = followed('/events?cursor=beginning', isEnd)
  const answers = await Promise.all(Array.from({ length: 50 }, () => create('2025-01-10')))
  const [[status, first] = [0, '']] = answers
  expect(status).toBe(202)
  expect(new Set(answers.map(([, text]) => text))).toEqual(new Set([first]))
  expect(answers.filter(([, , replayed]) => replayed === 'true')).toHaveLength(49)
  const before = await following
  expect(await create('2025-01-11')).toMatchObject([422, expect.stringContaining('idempotency_key_reused'), null])

  server.kill('SIGKILL')
  await server.ended
  server = await project.dev()
  expect(await create('2025-01-10')).toEqual([202, first, 'true'])
  expect((await create('2025-01-11'))[0]).toBe(422)
  const { backfills } = (await (await ask('GET', '/backfills')).json()) as { backfills: unknown[] }
  expect(backfills).toHaveLength(1)

  const ids = before.map(({ event_id }) => event_id)
  const again = await followed('/events', isEnd, ids[3])
  const end = again.findIndex(isEnd)
  expect(again.slice(0, end + 1).map(({ event_id }) => event_id)).toEqual(ids.slice(4, before.findIndex(isEnd) + 1))
}, 120_000)

test('[X9] the data of an asset is shown in pages, of all partitions or of one', async () => {
  const get = async (query: string) => (await (await ask('GET', `/assets/days/data${query}`)).json()) as Record<string, unknown>
  expect(await get('?partition=2025-01-03')).toMatchObject({
    asset_key: 'days',
    columns: [{ name: 'value' }, { name: 'partition', type: 'VARCHAR' }],
    rows: [['2025-01-03', '2025-01-03']],
    truncated: false,
    next_cursor: null,
  })
  const first = await get('?limit=6')
  const second = await get(`?limit=6&cursor=${first['next_cursor']}`)
  const rows = [first, second].flatMap((page) => page['rows'] as string[][])
  expect(rows.map(([value]) => value).toSorted()).toEqual(
    Array.from({ length: 10 }, (_, i) => `2025-01-${String(i + 1).padStart(2, '0')}`),
  )
  expect(second['next_cursor']).toBeNull()
  expect(await get('?partition=2025-02-20')).toMatchObject({ rows: [] })
  expect((await ask('GET', '/assets/nope/data')).status).toBe(404)
}, 60_000)
