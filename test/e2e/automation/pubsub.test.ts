import { exportJWK, generateKeyPair, type JWTPayload, SignJWT, UnsecuredJWT } from 'jose'
import { expect, test } from 'vitest'
import { projectOf } from '../support/project.ts'

const SENSORS = `import { asset, pubsub, run, sensor } from 'servo-flow'
import { z } from 'zod'
export const orders = asset('orders', { run: () => 1 })
export const late = sensor.push('late', {
  source: pubsub({
    topic: 'projects/shop/topics/late',
    audience: 'https://servo.example/late',
    serviceAccount: 'pusher@shop.iam.gserviceaccount.com',
    schema: z.object({ order: z.number() }),
  }),
  on: () => run(orders),
})
`
/** Google's keys are out of reach of a test, so the request for them is answered inside the server's process. Everything else is the product. */
const NETWORK = `import { readFileSync } from 'node:fs'
const outside = globalThis.fetch
globalThis.fetch = async (url, init) =>
  String(url) === 'https://www.googleapis.com/oauth2/v3/certs'
    ? new Response(readFileSync(new URL('certs.json', import.meta.url)), { headers: { 'cache-control': 'max-age=3600' } })
    : await outside(url, init)
`

test('[A49] servo dev runs what Google pushes; forged, expired and foreign tokens are refused and leave nothing but a count', async () => {
  const google = await generateKeyPair('RS256', { extractable: true })
  const stranger = await generateKeyPair('RS256')
  const certs = { keys: [{ ...(await exportJWK(google.publicKey)), kid: 'k1', use: 'sig', alg: 'RS256' }] }
  const project = projectOf({ 'assets/a.ts': SENSORS, 'network.mjs': NETWORK, 'certs.json': JSON.stringify(certs) })
  const dev = await project.devIn({ NODE_OPTIONS: `--import ${project.file('network.mjs')}` })

  const seconds = Math.floor(Date.now() / 1_000)
  const good = {
    iss: 'https://accounts.google.com',
    aud: 'https://servo.example/late',
    email: 'pusher@shop.iam.gserviceaccount.com',
    email_verified: true,
    iat: seconds,
    exp: seconds + 3_600,
  }
  const sign = (claims: JWTPayload, { privateKey } = google) =>
    new SignJWT({ ...good, ...claims }).setProtectedHeader({ alg: 'RS256', kid: 'k1' }).sign(privateKey)
  const message = { data: Buffer.from('{"order":7}').toString('base64'), messageId: '1', publishTime: '2026-01-01T00:00:00Z' }
  const push = async (token: string | undefined) => {
    const answer = await fetch(`${dev.url}/pubsub/default/default/late`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(token !== undefined && { authorization: `Bearer ${token}` }) },
      body: JSON.stringify({ message, subscription: 'projects/shop/subscriptions/late' }),
    })
    const { code } = (await answer.json()) as { code?: string }
    return [answer.status, code]
  }

  expect(await push(undefined)).toEqual([401, 'bad_token'])
  expect(await push(await sign({}, stranger))).toEqual([401, 'bad_token'])
  expect(await push(new UnsecuredJWT(good).encode())).toEqual([401, 'bad_token'])
  expect(await push(await sign({ iss: 'https://accounts.example' }))).toEqual([401, 'bad_token'])
  expect(await push(await sign({ aud: 'https://servo.example/other' }))).toEqual([401, 'wrong_audience'])
  expect(await push(await sign({ iat: seconds - 7_200, exp: seconds - 3_600 }))).toEqual([401, 'token_expired'])
  expect(await push(await sign({ email: 'other@shop.iam.gserviceaccount.com' }))).toEqual([403, 'wrong_service_account'])
  const { runs, sensors } = await project.client()
  expect((await sensors.evals('late', { limit: 10 })).evals).toEqual([])
  expect(await runs.list({ limit: 10 })).toEqual([])
  expect((await project.servo('sensors', 'show', 'late')).stdout).toContain(
    '4 bad_token, 1 wrong_audience, 1 token_expired, 1 wrong_service_account',
  )

  const token = await sign({})
  expect(await push(token)).toEqual([200, undefined])
  expect(await push(token)).toEqual([200, undefined])
  expect((await sensors.evals('late', { limit: 10 })).evals).toHaveLength(1)
  expect(await runs.list({ limit: 10 })).toHaveLength(1)
})
