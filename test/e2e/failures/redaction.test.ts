import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { sha256 } from '../../../src/lib/hash.ts'
import { projectOf, type TestProject } from '../support/project.ts'

const TOKEN = 'canary-token/4f9a+7'
const DSN = 'canary-dsn-51c0'
const SIGN = 'canary-sign-77d2'
/** The name of the second says nothing: a resource declares it. The third is the secret of a webhook. */
const env = { SHOP_API_TOKEN: TOKEN, SERVO_DB_DSN: DSN, SHOP_SIGN: SIGN, DATABASE_URL: 'postgres://bob:canaryPw%40rd99@db/x' }

const ASSETS = `import { writeSync } from 'node:fs'
import { asset, check, command, resource, sensor, webhook } from 'servo-flow'
import { z } from 'zod'

const token = process.env.SHOP_API_TOKEN!
const db = resource('db', { config: z.object({ dsn: z.string() }), secrets: ['dsn'], open: ({ dsn }) => ({ dsn }) })
const group = 'sick'
export const throws = asset('throws', {
  group,
  resources: { db },
  run({ resources, metadata }) {
    metadata({ used: { [token]: [resources.db.dsn] } })
    const cause = Object.assign(new Error('basic ' + Buffer.from('me:' + token).toString('base64')), { code: token })
    throw new Error('no answer from https://api.example/?k=' + encodeURIComponent(token) + 'x'.repeat(16_300) + token, { cause })
  },
})
export const logs = asset('logs', {
  group,
  resources: { db },
  async run({ log, resources, metadata }) {
    log.warn('as ' + decodeURIComponent(new URL(process.env.DATABASE_URL!).password))
    log.info('with ' + token, { dsn: resources.db.dsn, deep: [{ token }] })
    console.log({ token })
    process.stdout.write(token.slice(0, 9))
    process.stdout.write(token.slice(9) + '\\n')
    process.stdout.write('x'.repeat(65_530))
    process.stdout.write(token + 'y'.repeat(70_000))
    writeSync(1, 'past console ' + token + '\\n')
    process.env.LATE_SECRET = 'canary-late-0b1e'
    console.error(process.env.LATE_SECRET)
    metadata({ token })
    return 1
  },
  checks: { 'no token': check.warn(() => ({ ok: false, found: token })), throws: () => { throw new Error(token) } },
})
export const versioned = asset('versioned', { group, run({ dataVersion }) { dataVersion('of ' + token); return 1 } })
export const crashes = asset('crashes', { group, run() { writeSync(2, 'dying ' + token + '\\n'); process.kill(process.pid, 'SIGABRT') } })
export const exits = asset('exits', { group, run: () => void setTimeout(() => { throw new Error(token) }) , timeout: '30s' })
export const program = command('program', { group, run: ['sh', '-c', 'echo "out $SHOP_API_TOKEN"; echo "err $SHOP_API_TOKEN" >&2; exit 3'] })

export const hook = sensor.push('hook', {
  source: webhook({ path: 'shop', schema: z.object({}), secret: 'SHOP_SIGN', verify: 'token' }),
  on() { console.log('saw', token); throw new Error('signed with ' + process.env.SHOP_SIGN) },
})
export const poll = sensor.poll('poll', { every: '1h', cursor: z.string(), poll() { throw new Error('cannot read ' + token) } })
`

/** Every file of the workspace that has one of these texts. */
function filesWith(project: TestProject, texts: readonly string[]): string[] {
  const files = fs
    .readdirSync(project.file('.servo'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
  return files
    .map(({ parentPath, name }) => path.join(parentPath, name))
    .filter((file) => {
      const bytes = fs.readFileSync(file)
      return texts.some((text) => bytes.includes(text))
    })
}

test('[W7] secrets that code throws, logs, prints or reports are in no file of the workspace and in no output', async () => {
  const project = projectOf({ 'assets/sick.ts': ASSETS })
  const say = async (...args: string[]): Promise<string> => {
    const { stdout, stderr } = await project.begin(args, env).ended
    return stdout + stderr
  }
  const ran = await say('run', 'group:sick')
  const [, id = ''] = /(run_\w{8}) {2}\d+ tasks/.exec(ran) ?? []
  expect(id, ran).not.toBe('')
  const said = {
    run: ran,
    show: await say('runs', 'show', id),
    json: await say('runs', 'show', id, '--json'),
    logs: await say('runs', 'logs', id, '--json'),
    query: await say('query', 'select * from task_attempts', '--json'),
    versions: await say('query', 'select data_version from data_versions', '--json'),
  }
  // What was said is there, but for the secrets.
  expect(said.json).toContain('"used": {')
  expect(said.json).toContain('no answer from https://api.example/?k=[redacted SHOP_API_TOKEN]xxx')
  // The version can still be compared with the one of the same data.
  expect(said.versions).toContain(sha256(`of ${TOKEN}`))
  for (const text of [
    'as [redacted DATABASE_URL]',
    'with [redacted SHOP_API_TOKEN]',
    'past console [redacted SHOP_API_TOKEN]',
    '[redacted LATE_SECRET]',
  ])
    expect(said.logs).toContain(text)
  for (const text of ['out [redacted SHOP_API_TOKEN]', 'err [redacted SHOP_API_TOKEN]', 'dying [redacted SHOP_API_TOKEN]'])
    expect(said.logs).toContain(text)
  expect(said.json).toContain('"[redacted SERVO_DB_DSN]"')

  const dev = await project.devIn(env)
  await project.begin(['sensors', 'evaluate', 'poll'], env).ended
  await project.begin(['sensors', 'send', 'hook', '--data', '{}'], env).ended
  const evals = `${await say('sensors', 'evals', 'poll', '--json')}${await say('sensors', 'evals', 'hook', '--json')}`
  expect(evals).toContain('cannot read [redacted SHOP_API_TOKEN]')
  expect(evals).toContain('signed with [redacted SHOP_SIGN]')
  expect(evals).toContain('saw [redacted SHOP_API_TOKEN]')

  project.write('assets/bad.ts', `throw new Error('loading with ' + process.env.SHOP_API_TOKEN)\n`)
  await dev.says(/loading with \[redacted SHOP_API_TOKEN\]/)
  dev.kill('SIGINT')
  await dev.ended

  const base64 = Buffer.from(`me:${TOKEN}`).toString('base64').slice(6, -4)
  const canaries = [TOKEN, DSN, SIGN, 'canary', 'Pw@rd99', encodeURIComponent(TOKEN), base64]
  for (const [where, text] of Object.entries({ ...said, evals, dev: dev.shown }))
    for (const canary of canaries) expect(text, `${where} has ${canary}`).not.toContain(canary)
  expect(filesWith(project, canaries)).toEqual([])
})
