import { connect } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { localComponents } from '../../src/server/components.ts'
import { TestProject } from './support/project.ts'

let project: TestProject
let url: URL
let token: string
beforeAll(async () => {
  project = new TestProject({
    'assets/a.ts': `import { asset } from 'servo-flow'\nexport const a = asset('a', { run: () => 1 })\n`,
  })
  await project.dev()
  url = new URL((await localComponents(project.file('.servo')).lease.leader())?.address as string)
  token = project.token
})
afterAll(() => project.end())

const CHUNK = Buffer.from(`${(65_536).toString(16)}\r\n${' '.repeat(65_536)}\r\n`)
const CHUNKS = 1_600

test.each([
  ['/api/v1/orchestration/runs', 401],
  ['/api/v1/orchestration/workers/claim', 401],
  ['/api/v1/orchestration/tasks/d_1/completed', 401],
  ['/nowhere', 404],
])('a hundred megabytes that a stranger sends to %s are answered with %i, and not read', async (to, status) => {
  const socket = connect(Number(url.port), url.hostname)
  let heard = ''
  socket.setEncoding('utf8').on('data', (text: string) => {
    heard += text
  })
  socket.on('error', () => undefined)
  const closed = new Promise((resolve) => socket.once('close', resolve))
  const answered = new Promise((resolve) => socket.once('data', resolve))
  socket.write(`POST ${to} HTTP/1.1\r\nhost: ${url.host}\r\ntransfer-encoding: chunked\r\n\r\n`)
  socket.write(CHUNK)
  // The answer comes first: once the server has closed, a write that fails would end this socket before it is read.
  await Promise.race([answered, closed])
  let sent = 1
  while (!socket.destroyed && sent < CHUNKS) {
    sent += 1
    if (!socket.write(CHUNK)) await Promise.race([closed, new Promise((resolve) => socket.once('drain', resolve))])
  }
  socket.destroy()
  expect(heard).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
  expect(heard).toContain('application/problem+json')
  // What the system holds between two programs of one machine is a few megabytes.
  expect(sent).toBeLessThan(CHUNKS / 2)
})

test('a page of another site is refused, also with the token', async () => {
  const ask = (headers: Record<string, string>) =>
    fetch(new URL('/api/v1/orchestration/runs', url), { headers: { authorization: `Bearer ${token}`, ...headers } })
  expect((await ask({})).status).toBe(200)
  expect((await ask({ origin: url.origin })).status).toBe(200)
  for (const origin of ['https://evil.example', 'null', 'http://localhost:1']) {
    const response = await ask({ origin })
    expect(response.status).toBe(403)
    expect(await response.json()).toMatchObject({ code: 'forbidden', status: 403, hint: expect.any(String) })
  }
})
