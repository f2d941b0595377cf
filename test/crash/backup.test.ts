import { existsSync, readdirSync, readFileSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { projectOf } from '../e2e/support/project.ts'
import { until } from '../e2e/support/until.ts'

/** Killed backups of a busy project. More with `SERVO_BACKUP_KILLS=50`. */
const KILLS = Number(process.env['SERVO_BACKUP_KILLS'] ?? 1)

const ASSETS = `import { asset } from 'servo-flow'
export const small = asset('small', { run: ({ log }) => { log.info('made'); return { at: Date.now() } } })
export const large = asset('large', { inputs: { small }, run: ({ small }) => 'x'.repeat(50_000) + small.at })
`

/** The bytes of all files below a folder, by path. */
function filesBelow(dir: string): Map<string, string> {
  const found = new Map<string, string>()
  for (const entry of readdirSync(dir, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isFile()) found.set(path.slice(dir.length + 1), readFileSync(path, 'base64'))
  }
  return found
}

const WORKSPACE = '.servo/tenant=default/workspace=default'

test('a backup that is made and killed while the project runs restores to what was acknowledged, and equals it when nothing runs', {
  timeout: 120_000 + KILLS * 20_000,
}, async () => {
  const project = projectOf({ 'assets/all.ts': ASSETS })
  const dev = await project.dev()
  const client = await project.client()
  const backup = join(project.dir, 'backup')
  let goesOn = true
  let acknowledged: string[] = []
  const asking = (async () => {
    while (goesOn && !dev.isOver) {
      const { run_id } = await client.runs.request({ select: ['*'] }, 'somebody')
      acknowledged = [...acknowledged, run_id]
      // Ever more slowly: otherwise each round would take longer than the one before.
      await sleep(50 + 10 * acknowledged.length)
    }
  })()

  for (let round = 0; round < KILLS; round++) {
    const begun = project.begin(['backup', 'backup'])
    await sleep(300 + Math.random() * 900)
    begun.kill('SIGKILL')
    await begun.ended
    const before = acknowledged
    expect(await project.servo('backup', 'backup')).toMatchObject({ code: 0, stderr: '' })
    const copy = projectOf({ 'assets/all.ts': ASSETS })
    expect(await copy.servo('restore', backup)).toMatchObject({ code: 0, stderr: '' })
    expect(await copy.json('verify')).toMatchObject({ ok: true, replayed: true })
    const there = new Set((await copy.query('SELECT run_id FROM runs')).map(({ run_id }) => run_id))
    expect(before.filter((run) => !there.has(run))).toEqual([])
    await copy.end()
  }

  goesOn = false
  await asking
  // What an attempt wrote before it was stopped is on no record, and in no backup.
  await until(async () => (await client.runs.list({ limit: 1_000 })).every(({ state }) => state === 'SUCCEEDED'), 'every run')
  dev.kill('SIGTERM')
  await dev.ended
  expect(await project.servo('backup', 'backup')).toMatchObject({ code: 0 })
  // Twice: nothing is left to copy.
  expect(await project.json('backup', 'backup')).toMatchObject({ copied: { files: 0, bytes: 0 } })
  const copy = projectOf({ 'assets/all.ts': ASSETS })
  expect(await copy.json('restore', backup)).toMatchObject({ made_at: expect.any(String) })
  for (const folder of ['data', 'logs', 'secrets'])
    expect(filesBelow(copy.file(join(WORKSPACE, folder)))).toEqual(filesBelow(project.file(join(WORKSPACE, folder))))
  const [original, restored] = [project, copy].map((each) => filesBelow(each.file(join(WORKSPACE, 'ledger'))))
  for (const [path, bytes] of original ?? []) expect(restored?.get(path)).toBe(bytes)
  // The pause is one segment more.
  expect(restored?.size).toBe((original?.size ?? 0) + 1)
  const { code, stdout } = await copy.servo('why', 'run', acknowledged[0] ?? '')
  expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining('somebody') })

  // Restoring replaces nothing, and a copy does not mix with the backup of its original.
  expect(await copy.servo('restore', backup)).toMatchObject({ code: 2, stderr: expect.stringContaining('there is state') })
  expect(await copy.servo('run', 'small')).toMatchObject({ code: 0 })
  expect(await copy.servo('backup', backup)).toMatchObject({ code: 0 })
  expect(await project.servo('backup', backup)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('a segment that this project does not have'),
  })
  const again = await copy.dev()
  expect(await copy.json('automation', 'show').catch(() => copy.clientOf(again).schedules.automation())).toMatchObject({
    status: 'paused',
    reason: expect.stringContaining('restored from the backup of'),
  })
})

test('a backup refuses a folder with other files, a damaged original, and its own project', async () => {
  const project = projectOf({ 'assets/all.ts': ASSETS, 'mine/notes.txt': 'mine' })
  expect(await project.servo('backup', 'backup')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('nothing is recorded'),
  })
  expect(await project.servo('restore', 'mine')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('holds other files'),
  })
  expect(await project.servo('restore', 'nowhere')).toMatchObject({ code: 2, stderr: expect.stringContaining('no backup') })
  expect(await project.servo('run', '*')).toMatchObject({ code: 0 })
  expect(await project.servo('backup', 'mine')).toMatchObject({ code: 2, stderr: expect.stringContaining('holds other files') })
  expect(readdirSync(project.file('mine'))).toEqual(['notes.txt'])
  expect(await project.servo('backup', '.servo/backup')).toMatchObject({ code: 2, stderr: expect.stringContaining('inside') })
  expect(existsSync(project.file('nowhere'))).toBe(false)

  const tables = project.file(join(WORKSPACE, 'state/orchestration/runs/l0'))
  const [file = ''] = readdirSync(tables)
  truncateSync(join(tables, file), 100)
  const damaged = await project.servo('backup', 'backup')
  expect(damaged).toMatchObject({ code: 1, stderr: expect.stringContaining(`${file} is not the file that was written`) })
  expect(await project.servo('restore', 'backup', '--project', project.dir)).toMatchObject({ code: 2 })
})
