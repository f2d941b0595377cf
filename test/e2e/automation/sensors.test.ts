import { writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { projectOf } from '../support/project.ts'

const ORDERS = `import { asset } from 'servo-flow'
export const orders = asset('orders', { run: () => undefined })
`

test('commands about sensors work without a server, and say that none is evaluated', async () => {
  const project = projectOf({ 'assets/a.ts': ORDERS })
  const dev = await project.dev()
  const create = ['sensors', 'create', 'inbox', '--webhook', 'shop', '--select', 'orders', '--key-at', '/id']
  expect(await project.servo(...create)).toMatchObject({ code: 2, stderr: expect.stringContaining('missing option --verify') })
  expect(await project.servo(...create, '--verify', 'github')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('name the secret'),
  })
  const first = await project.json(...create, '--verify', 'github', '--secret', 'SHOP_SECRET', '--key', 'once')
  expect(await project.json(...create, '--verify', 'github', '--secret', 'SHOP_SECRET', '--key', 'once')).toEqual(first)
  expect(await project.servo('sensors', 'update', 'inbox')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('no changes given for inbox'),
  })
  expect(await project.servo('sensors', 'update', 'inbox', '--audience', 'shop')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--audience is only for sensors of type pubsub; inbox is of type webhook'),
  })
  const update = ['sensors', 'update', 'inbox', '--secret', 'SHOP_SECRET_2', '--secret', 'SHOP_SECRET', '--max-tries', '3']
  expect((await project.servo(...update)).stdout).toBe('inbox: sensor changed\n')
  expect((await project.json('sensors', 'show', 'inbox')).definition).toMatchObject({
    config: { path: 'shop', verify: 'github', secrets: ['SHOP_SECRET_2', 'SHOP_SECRET'], fixed: { key: '/id' } },
    max_tries: 3,
    asset_selection: ['orders'],
  })
  const listed = await project.servo('sensors', 'list')
  expect(listed).toMatchObject({ code: 0, stderr: '' })
  expect(listed.stdout).toMatch(/inbox +webhook +active/)
  dev.kill('SIGINT')
  await dev.ended

  expect(await project.servo('sensors', 'list')).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('sensors are evaluated only while one is'),
  })
  expect((await project.servo('sensor', 'show', 'inbox')).stdout).toMatch(/address +\/hooks\/\S+\/shop\n/)
  expect(await project.servo('sensors', 'show', 'inbx')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('Did you mean inbox?'),
  })
  expect((await project.servo('sensors', 'pause', 'inbox', '--reason', 'too loud')).stdout).toBe('inbox: sensor paused\n')
  expect((await project.servo('sensors', 'list')).stdout).toMatch(/inbox +\w+ +paused .*paused by \S+: too loud\n/)
  expect((await project.servo('sensors', 'show', 'inbox')).stdout).toMatch(/why +paused by \S+: too loud \(20\d\d-/)
  const late = await project.servo('sensors', 'resume', 'inbox', '--expect-version', '3')
  expect(late).toMatchObject({ code: 2, stderr: expect.stringContaining('state version 0, not 3') })
  expect(await project.json('sensors', 'resume', 'inbox')).toMatchObject([{ message: 'sensor resumed' }])
  expect(await project.servo('sensors', 'reset-cursor', 'inbox')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('inbox has no cursor'),
  })
  expect((await project.servo('sensors', 'evals', 'inbox')).stdout).toBe('no evaluations\n')
  expect(await project.json('sensors', 'dead-letters', 'inbox')).toEqual({ dead_letters: [], next_cursor: null })
  expect(await project.servo('sensors', 'replay', 'inbox', 'm1')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('message "m1" of'),
  })

  const file = project.file('message.json')
  writeFileSync(file, '{"id": 7}')
  expect(await project.servo('sensors', 'send', 'inbox', '--data', `@${file}`)).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('Start one: servo dev'),
  })
  expect(await project.servo('sensors', 'send', 'inbox', '--data', '{id: 7}')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--data is not JSON'),
  })
  expect((await project.servo('sensors', 'delete', 'inbox')).stdout).toBe('inbox: sensor deleted\n')
  expect(await project.json('sensors', 'list')).toEqual({ sensors: [], next_cursor: null })
})
