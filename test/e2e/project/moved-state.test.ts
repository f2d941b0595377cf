import fs from 'node:fs'
import { expect, test } from 'vitest'
import { projectOf } from '../support/project.ts'
import { until } from '../support/until.ts'

const ASSETS = `import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { asset, table } from 'servo-flow'
import { z } from 'zod'
export const quick = asset('quick', { run: () => 1 })
export const rows = table('rows', {
  schema: z.object({ id: z.number() }),
  async run() {
    while (!existsSync('go')) await sleep(20)
    return [{ id: 1 }]
  },
})
`

const MOVED =
  /error: the state folder.* was moved, replaced or deleted while this process was using it\nhint: This process stopped and wrote nothing more\. Put the folder back/

test('[E6] an idle server whose state folder is moved away stops, says so, and makes no other', async () => {
  const project = projectOf({ 'assets/all.ts': ASSETS })
  const dev = await project.dev()
  fs.renameSync(project.file('.servo'), project.file('moved'))
  expect(await dev.ended).toMatchObject({ code: 3, stderr: expect.stringMatching(MOVED) })
  expect(project.has('.servo')).toBe(false)
  fs.renameSync(project.file('moved'), project.file('.servo'))
  expect((await project.servo('run', 'quick', '--quiet')).code).toBe(0)
})

test('[E6] a server whose state folder is deleted acknowledges nothing more, and makes no other', async () => {
  const project = projectOf({ 'assets/all.ts': ASSETS })
  const dev = await project.dev()
  const client = await project.client()
  fs.renameSync(project.file('.servo'), project.file('gone'))
  fs.rmSync(project.file('gone'), { recursive: true })
  // At once: before the server has looked whether the folder is still there.
  await expect(client.runs.request({ select: ['quick'] }, 'ada')).rejects.toMatchObject({ name: 'ServoError' })
  expect(await dev.ended).toMatchObject({ code: 3, stderr: expect.stringMatching(MOVED) })
  expect(project.has('.servo')).toBe(false)
})

test('[E6] a server whose state folder is deleted file by file says so, and so does a command that follows a run', async () => {
  const project = projectOf({ 'assets/all.ts': ASSETS })
  const dev = await project.dev()
  const run = project.begin(['run', 'rows'])
  await run.says(/running/)
  const lease = project.file('.servo/tenant=default/workspace=default/lease')
  // What rm -rf removes first may be the claim, while the folder around it is still there.
  for (const name of fs.readdirSync(lease)) fs.rmSync(`${lease}/${name}`, { recursive: true })
  fs.rmSync(project.file('.servo'), { recursive: true })
  expect(await dev.ended).toMatchObject({ code: 3, stderr: expect.stringMatching(MOVED) })
  expect(await run.ended).toMatchObject({ code: 3, stderr: expect.stringMatching(MOVED) })
  expect(project.has('.servo')).toBe(false)
})

test('[E6] a run that leads by itself ends when its state folder is moved, and its workers write no other', async () => {
  const project = projectOf({ 'assets/all.ts': ASSETS })
  const run = project.begin(['run', 'rows'])
  await run.says(/ rows|1 task/)
  await until(() => /running/.test(run.shown), 'the task to run')
  fs.renameSync(project.file('.servo'), project.file('moved'))
  project.write('go')
  expect(await run.ended).toMatchObject({ code: 3, stderr: expect.stringMatching(MOVED) })
  expect(project.has('.servo')).toBe(false)
})
