import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import type { DispatchEnvelope } from '../../../contract/dispatch.ts'
import { postJson } from './push.ts'

const envelope: DispatchEnvelope = {
  task_id: 'd_1',
  task_key: 'a',
  run_id: 'run_1',
  attempt: 1,
  attempt_id: 'a_1',
  asset_key: 'a',
  task_token: 'secret',
  traceparent: '00-11111111111111111111111111111111-2222222222222222-01',
  payload: { inputs: {}, labels: {} },
}

/** A queue that gives this answer, and what it was sent. */
async function queueThat(answers: { status: number; location?: string }) {
  const got: { request: IncomingMessage; body: string }[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    got.push({ request, body })
    response.writeHead(answers.status, answers.location ? { location: answers.location } : {}).end('thanks')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/tasks`, got }
}

test('a dispatch is posted as JSON, with an id by which a repetition can be told', async () => {
  const { url, got } = await queueThat({ status: 202 })
  await postJson(url, envelope)
  expect(JSON.parse(got[0]?.body ?? '')).toEqual(envelope)
  expect(got[0]?.request.headers).toMatchObject({
    'content-type': 'application/json',
    'idempotency-key': 'd_1',
    traceparent: envelope.traceparent,
  })
})

test.each([400, 404, 500, 503])('an answer of %s means that it was not taken', async (status) => {
  const { url } = await queueThat({ status })
  await expect(postJson(url, envelope)).rejects.toMatchObject({ code: 'push_refused', message: `it answered ${status}` })
})

test('the token is not sent on to where the queue points', async () => {
  const other = await queueThat({ status: 200 })
  const { url } = await queueThat({ status: 307, location: other.url })
  await expect(postJson(url, envelope)).rejects.toMatchObject({ code: 'push_refused' })
  expect(other.got).toEqual([])
})

test('nobody there means that it was not taken', async () => {
  await expect(postJson('http://127.0.0.1:1/tasks', envelope)).rejects.toThrow()
})
