import fs from 'node:fs'
import { expect, test } from 'vitest'
import { projectOf } from '../support/project.ts'

const ASSETS = `import { asset, resource, sensor, webhook } from 'servo-flow'
import { z } from 'zod'
const api = resource('api', { config: z.object({ url: z.string() }), open: ({ url }) => url })
export const greeting = asset('greeting', {
  resources: { api },
  run({ resources }) {
    console.log('api=' + resources.api, 'from=' + process.env.FROM, 'both=' + process.env.BOTH, 'token=' + process.env.SHOP_TOKEN)
    return 1
  },
})
export const hook = sensor.push('hook', {
  source: webhook({ path: 'shop', schema: z.object({}), secret: 'SHOP_SIGN', verify: 'token' }),
  on: () => [],
})
`
const SECRETS = ['canary-token-1', 'canary-sign-2']
const ENV = `SERVO_API_URL=https://one.example\nFROM=env\nBOTH=env\nSHOP_TOKEN=${SECRETS[0]}\nSHOP_SIGN=${SECRETS[1]}\n`

test('[W8] servo reads .env.local and .env of the project, in workers, in sensors and for its own settings', async () => {
  const project = projectOf({ 'assets/all.ts': ASSETS, '.env': ENV, '.env.local': 'BOTH=local\n' })
  const alone = await project.begin(['run', 'greeting'], { FROM: 'shell' }).ended
  expect(alone.stdout).toContain('api=https://one.example from=shell both=local token=[redacted SHOP_TOKEN]')

  const dev = await project.dev()
  const send = async (token: string): Promise<number> =>
    (
      await fetch(`${dev.url}/hooks/default/default/shop`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: '{}',
      })
    ).status
  expect(await send('wrong')).toBe(401)
  expect(await send('canary-sign-2')).toBe(200)

  // Saved as editors do it.
  fs.writeFileSync(project.file('.env.draft'), ENV.replace('one.example', 'two.example'))
  fs.renameSync(project.file('.env.draft'), project.file('.env'))
  await dev.says(/\d loaded /)
  expect((await project.servo('run', 'greeting')).stdout).toContain('api=https://two.example')

  project.write('.env', 'SERVO_LOOK_MS=soon\n')
  const { code, stderr } = await project.servo('runs', 'list')
  expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining('SERVO_LOOK_MS cannot be "soon"') })

  dev.kill('SIGINT')
  await dev.ended
  const files = fs
    .readdirSync(project.file('.servo'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
  for (const { parentPath, name } of files) {
    const bytes = fs.readFileSync(`${parentPath}/${name}`)
    expect(
      SECRETS.filter((secret) => bytes.includes(secret)),
      name,
    ).toEqual([])
  }
})
