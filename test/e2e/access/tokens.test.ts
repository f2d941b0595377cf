import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { ServoClient } from '../../../src/client/client.ts'
import type { ServoError } from '../../../src/lib/error.ts'
import { projectOf, TestProject } from '../support/project.ts'
import { type Servo, servo } from '../support/servo.ts'
import { until } from '../support/until.ts'

const FILES = {
  'assets/a.ts': `import { asset } from 'servo-flow'\nexport const a = asset('a', { run: () => { console.log('made here'); return 1 } })\n`,
}

let project: TestProject
let dev: Servo
/** A folder without a project: whoever works here has nothing but an address and a token. */
let elsewhere: string
beforeAll(async () => {
  project = new TestProject(FILES)
  dev = await project.dev()
  elsewhere = fs.mkdtempSync(path.join(os.tmpdir(), 'servo-elsewhere-'))
})
afterAll(async () => {
  await project.end()
  fs.rmSync(elsewhere, { recursive: true })
})

const make = (role: string, name = role, ...more: string[]) =>
  project.json('tokens', 'create', '--role', role, '--name', name, ...more)
const away = (token: string, ...args: string[]) =>
  servo(args, { cwd: elsewhere, env: { SERVO_URL: dev.url, SERVO_TOKEN: token } })
const codeOf = (error: ServoError): string => error.code

test('[U3] the first token is made where no server ever ran, and only its owner can read the file, which has no secret', async () => {
  const fresh = projectOf(FILES)
  const { code, stdout, stderr } = await fresh.servo('tokens', 'create', '--role', 'admin', '--name', 'ana', '--expires', '30d')
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^servo_[a-z2-7]{16}_[A-Za-z0-9_-]{43}\n$/)])
  expect(stderr).toMatch(/^tok_[a-z2-7]{16}: role admin, expires .*not shown again\n$/)
  const folder = fresh.file('.servo/tenant=default/workspace=default/tokens')
  const [name = '', ...others] = fs.readdirSync(folder)
  const file = path.join(folder, name)
  expect(others).toEqual([])
  expect(fs.statSync(file).mode & 0o077).toBe(0)
  expect(fs.readFileSync(file, 'utf8')).not.toContain(stdout.trim().slice(-43))
  const [listed] = await fresh.json('tokens', 'list')
  expect(listed).toMatchObject({ name: 'ana', role: 'admin', status: 'active' })
  expect((await fresh.servo('tokens', 'list')).stdout).toMatch(new RegExp(`${listed.token_id} +active +admin .* ana`))
})

test('[U4] a token that is made while the server runs counts at once, and one that is revoked soon does not', async () => {
  const { token, token_id } = await make('viewer')
  const client = new ServoClient({ url: dev.url, token })
  expect(await client.runs.list({ limit: 1 })).toEqual([])
  expect(await project.servo('tokens', 'revoke', token_id)).toMatchObject({ code: 0, stdout: `${token_id} is revoked\n` })
  let last: string | undefined
  await until(async () => {
    last = await client.runs.list({ limit: 1 }).then(() => undefined, codeOf)
    return last !== undefined
  })
  expect(last).toBe('token_revoked')
})

test('[U5] commands work against another server as they do here, and what they do is put on record under the token', async () => {
  const { token, token_id } = await make('operator', 'ci')
  const ran = await away(token, 'run', 'a')
  expect(ran).toMatchObject({ code: 0, stdout: expect.stringContaining('made here'), stderr: '' })
  const { stdout } = await away(token, 'runs', 'list', '--json', 'run_id,state,asked_by')
  const [{ run_id, ...run }] = JSON.parse(stdout)
  expect(run).toEqual({ state: 'SUCCEEDED', asked_by: `ci (${token_id})` })
  expect((await away(token, 'runs', 'logs', run_id)).stdout).toContain('made here')
  const detached = await servo(['run', 'a', '--detach', '--json', '--url', `${dev.url}/`, '--token', token], { cwd: elsewhere })
  expect(JSON.parse(detached.stdout)).toMatchObject({ created: true })
  expect(await away(token, 'run', 'b')).toMatchObject({ code: 2, stderr: expect.stringContaining('asset b not found') })
  // The project that is named counts more than the environment.
  const own = await servo(['runs', 'list', '--project', project.dir], {
    cwd: elsewhere,
    env: { SERVO_URL: 'http://127.0.0.1:9' },
  })
  expect(own.code).toBe(0)
  // Nobody can pass for another by saying so.
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'x-servo-user': 'root' }
  const body = JSON.stringify({ select: ['a'], key: 'as root' })
  expect((await fetch(`${dev.url}/api/v1/orchestration/runs`, { method: 'POST', headers, body })).status).toBe(202)
  const [newest] = await (await project.client()).runs.list({ limit: 1 })
  expect(newest?.asked_by).toBe(`ci (${token_id})`)
})

test('an administrator makes and revokes tokens from elsewhere', async () => {
  const { token } = await make('admin')
  const made = JSON.parse((await away(token, 'tokens', 'create', '--role', 'worker', '--name', 'gpu-1', '--json')).stdout)
  expect(made).toMatchObject({ role: 'worker', created_by: expect.stringMatching(/^admin \(tok_/) })
  expect((await away(token, 'tokens', 'revoke', made.token_id)).code).toBe(0)
  expect(JSON.parse((await away(token, 'tokens', 'list', '--json')).stdout)).toContainEqual(
    expect.objectContaining({ name: 'gpu-1', status: 'revoked' }),
  )
})

test('[U2][U6] who is refused is told what to do, and the owner of the server is told that somebody was', async () => {
  const { token, token_id } = await make('viewer', 'looker')
  const [forbidden, unknown, missing] = await Promise.all([
    away(token, 'run', 'a'),
    away('nonsense', 'runs', 'list'),
    servo(['runs', 'list', '--url', dev.url], { cwd: elsewhere }),
  ])
  expect(forbidden).toEqual({
    code: 2,
    stdout: '',
    stderr: [
      `error: this needs the role operator; the token of looker (${token_id}) has the role viewer`,
      'hint: Use a token with the role operator. An administrator makes one: servo tokens create --role operator --name …\n',
    ].join('\n'),
  })
  expect(unknown).toMatchObject({ code: 2, stderr: expect.stringMatching(/^error: unknown token\nhint: Check SERVO_TOKEN/) })
  expect(missing).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^error: no token for http.*\nhint: Set SERVO_TOKEN/),
  })
  await dev.says(/a call was refused: not_permitted \(POST \/api\/v1\/orchestration\/runs from 127\.0\.0\.1\)/)
  await dev.says(/refused: unauthenticated \(/)
  expect(dev.shown).not.toMatch(/nonsense|servo_[a-z2-7]{16}/)
})

test.each([
  ['--url nowhere', /invalid value 'nowhere' for --url/],
  ['--url ftp://servo.example', /invalid value/],
  ['--url http://ana:secret@127.0.0.1:9 --token x', /must not have a user or a password/],
  ['--token x', /--token needs --url/],
  ['--url http://127.0.0.1:9 --token x --project .', /--url and --project cannot be used together/],
])('servo runs list %s is refused', async (flags, why) => {
  const { code, stderr } = await servo(['runs', 'list', ...flags.split(' ')], { cwd: elsewhere })
  expect([code, stderr]).toEqual([2, expect.stringMatching(why)])
  expect(stderr).not.toContain('secret')
})

test('a backup has no tokens', async () => {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'servo-backup-'))
  onTestFinished(() => fs.rmSync(dir, { recursive: true }))
  await make('viewer', 'copied')
  expect((await project.servo('backup', dir)).code).toBe(0)
  const files = fs.readdirSync(dir, { recursive: true }).map(String)
  expect(files.some((file) => file.includes('ledger'))).toBe(true)
  expect(files.filter((file) => file.includes('tok_') || /\btokens\b/.test(file))).toEqual([])
})
