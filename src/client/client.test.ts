import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import vm from 'node:vm'
import { build } from 'rolldown'
import { expect, onTestFinished, test } from 'vitest'
import { pages, ServoClient, type ServoError } from './index.ts'

interface Heard {
  readonly method: string | undefined
  readonly url: string | undefined
  readonly token: string | undefined
}

/** A server that answers with these, one after the other, and then with the last for ever. */
async function serverOf(...answers: ((request: IncomingMessage, response: ServerResponse) => void)[]) {
  const heard: Heard[] = []
  const server = createServer((request, response) => {
    heard.push({ method: request.method, url: request.url, token: request.headers.authorization })
    request.resume().on('end', () => answers[Math.min(heard.length, answers.length) - 1]?.(request, response))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { heard, url, client: new ServoClient({ url, token: 'secret' }) }
}

const json =
  (body: unknown, status = 200) =>
  (_: IncomingMessage, response: ServerResponse) =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
const busy = (status: number) => (_: IncomingMessage, response: ServerResponse) =>
  void response.writeHead(status, { 'retry-after': '0' }).end(JSON.stringify({ code: 'busy', detail: 'wait', status }))

const page = (next_cursor: string | null, ...ids: string[]) => ({ runs: ids.map((run_id) => ({ run_id })), next_cursor })

test('[Q5] a question is asked again while the server is busy, and a change only if it has a name', async () => {
  const asked = await serverOf(busy(503), busy(429), json(page(null)))
  expect(await asked.client.runs.page()).toEqual(page(null))
  expect(asked.heard).toHaveLength(3)

  const named = await serverOf(busy(503), json({ run_id: 'r' }, 202))
  expect(await named.client.runs.request({ select: ['*'], request_id: 'one' })).toEqual({ run_id: 'r' })

  const nameless = await serverOf(busy(503), json({ run_id: 'r' }, 202))
  await expect(nameless.client.runs.request({ select: ['*'] })).rejects.toMatchObject({ code: 'busy', kind: 'unavailable' })
  expect(nameless.heard).toHaveLength(1)
})

test('[Q5] a server that stays busy is asked as often as told, and then its problem is thrown', async () => {
  const { client, heard } = await serverOf(busy(503))
  await expect(client.with({ retries: 2 }).schedules.list()).rejects.toMatchObject({ code: 'busy' })
  expect(heard).toHaveLength(3)
  await expect(client.with({ retries: 0 }).schedules.list()).rejects.toMatchObject({ code: 'busy' })
  expect(heard).toHaveLength(4)
})

test('[Q5] a refusal is thrown with its code, its hint, the field and the facts', async () => {
  const problem = {
    type: 'urn:x',
    title: 'Conflict',
    status: 409,
    detail: 'it has changed',
    code: 'state_changed',
    hint: 'Look.',
  }
  const { client } = await serverOf(json({ ...problem, field: 'cron.0', expected: 3, actual: 4 }, 409))
  const error: ServoError = await client.schedules.pause('nightly', {}).then(expect.unreachable, (thrown) => thrown)
  expect(error).toMatchObject({ name: 'ServoError', kind: 'conflict', code: 'state_changed', message: 'it has changed' })
  expect([error.hint, error.field, error.facts]).toEqual([
    'Look.',
    'cron.0',
    { status: 409, field: 'cron.0', expected: 3, actual: 4 },
  ])
})

test('[Q5] a signal ends a request, and the wait for a server that is busy', async () => {
  const never = await serverOf(() => undefined)
  await expect(never.client.with({ signal: AbortSignal.timeout(10) }).runs.list()).rejects.toMatchObject({
    name: 'TimeoutError',
  })
  const enough = new AbortController()
  const late = await serverOf((_, response) => {
    response.writeHead(503, { 'retry-after': '30' }).end('{}')
    setImmediate(() => enough.abort(new Error('enough')))
  })
  await expect(late.client.with({ signal: enough.signal }).runs.list()).rejects.toThrow('enough')
})

test('[Q5] pages follow the cursor until there is none', async () => {
  const { client, heard } = await serverOf(json(page('c 1', 'a', 'b')), json(page(null, 'c')))
  const found: string[] = []
  for await (const { runs } of pages(client.runs.page, { status: 'FAILED' })) found.push(...runs.map(({ run_id }) => run_id))
  expect(found).toEqual(['a', 'b', 'c'])
  expect(heard.map(({ url }) => url?.split('?')[1])).toEqual(['status=FAILED', 'status=FAILED&cursor=c+1'])
})

test('[Q5] the client has no part that a browser lacks, and asks there by fetch', async () => {
  const { output } = await build({
    input: path.join(import.meta.dirname, 'index.ts'),
    platform: 'browser',
    write: false,
    output: { format: 'iife', name: 'servo' },
  })
  expect(output).toHaveLength(1)
  const [{ code, moduleIds }] = output
  // Neither schemas nor anything else of a server.
  expect(moduleIds.filter((id) => !/\/src\/(?:client|lib)\//.test(id))).toEqual([])
  expect(code).not.toMatch(/\brequire\(|^import\b/m)
  const { url, heard } = await serverOf(json(page(null, 'a')), (_, response) => {
    response.write('{"type":"run","run":{}}\n{"type":')
    response.end('"log"}\n')
  })
  const browser = { fetch, URLSearchParams, AbortSignal, TextDecoder, setTimeout, clearTimeout, url, seen: [] as unknown[] }
  await vm.runInContext(
    `${code};(async () => {
      const client = new servo.ServoClient({ url: url + '/', token: 'secret' })
      seen.push(await client.runs.list({ limit: 1 }))
      for await (const event of client.runs.follow('a')) seen.push(event.type)
    })()`,
    vm.createContext(browser),
  )
  expect(browser.seen).toEqual([[{ run_id: 'a' }], 'run', 'log'])
  expect(heard.map(({ method, url: at, token }) => [method, at, token])).toEqual([
    ['GET', '/api/v1/orchestration/runs?limit=1', 'Bearer secret'],
    ['GET', '/api/v1/orchestration/runs/a/follow', 'Bearer secret'],
  ])
})
