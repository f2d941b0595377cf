import { createHash } from 'node:crypto'
import fs from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { projectOf } from '../e2e/support/project.ts'

const ASSETS = `import { asset } from 'servo-flow'
const large = (text: string) => text.repeat(10_000)
export const first = asset('first', { run: ({ log }) => { log.info('made'); return large('first ') } })
export const second = asset('second', { run: () => large('second ') })
export const replaced = asset('replaced', { keep: { versions: 1 }, run: () => large('replaced ') + Math.random() })
export const small = asset('small', { run: () => ({ at: 1 }) })
`
const WORKSPACE = 'tenant=default/workspace=default'

const newProject = () => projectOf({ 'assets/all.ts': ASSETS })

async function madeProject() {
  const project = newProject()
  expect(await project.servo('run', '*')).toMatchObject({ code: 0 })
  return project
}

/** The files below a folder, by path. */
function filesBelow(dir: string): string[] {
  const entries = fs.readdirSync(dir, { recursive: true, withFileTypes: true })
  return entries.flatMap((entry) => (entry.isFile() ? [join(entry.parentPath, entry.name)] : [])).sort()
}

const digests = (dir: string): Record<string, string> =>
  Object.fromEntries(filesBelow(dir).map((path) => [path, createHash('sha256').update(fs.readFileSync(path)).digest('hex')]))

/** The file of the value of an asset, in the project or in a backup of it. */
function valueFile(dir: string, asset: string): string {
  const [path = ''] = filesBelow(join(dir, WORKSPACE, 'data', asset))
  return path
}

function flip(path: string): void {
  const bytes = fs.readFileSync(path)
  const middle = Math.floor(bytes.length / 2)
  bytes[middle] = bytes[middle]! ^ 1
  fs.writeFileSync(path, bytes)
}

const cut = (path: string): void => fs.truncateSync(path, 10)

/** The path of a file in a workspace, as commands print it. */
const printed = (path: string): string => path.slice(path.indexOf('tenant='))

test('[K8] values that are damaged or gone in the project stay whole in its backup, are named with exit code 1, and come back with a restore', async () => {
  const project = await madeProject()
  expect(await project.servo('backup', 'backup')).toMatchObject({ code: 0 })
  const backup = project.file('backup')
  const before = digests(join(backup, WORKSPACE, 'data'))
  const values = ['first', 'second'].map((asset) => valueFile(project.file('.servo'), asset))
  cut(values[0]!)
  fs.rmSync(values[1]!)
  const { code, stdout } = await project.servo('backup', 'backup', '--prune')
  expect(code).toBe(1)
  expect(stdout.match(/^damaged .*$/gm)).toEqual(values.map((value) => expect.stringContaining(printed(value))))
  expect(digests(join(backup, WORKSPACE, 'data'))).toEqual(before)
  const copy = newProject()
  expect(await copy.servo('restore', backup)).toMatchObject({ code: 0 })
  expect(await copy.json('verify', '--data')).toMatchObject({ ok: true, values: { checked: 3 } })
})

test('[K8][K9] values that are damaged before the first backup are not copied; backups and restores name them with exit code 1, and the rest is there', async () => {
  const project = await madeProject()
  const values = ['first', 'replaced', 'second'].map((asset) => valueFile(project.file('.servo'), asset))
  for (const [i, damage] of [cut, flip, fs.rmSync].entries()) damage(values[i]!)
  const paths = values.map(printed)
  const backup = project.file('backup')
  // Each time: a later backup does not forget them.
  for (let round = 0; round < 2; round++) {
    const report = await project.servo('backup', 'backup', '--json')
    const { problems } = JSON.parse(report.stdout)
    expect([report.code, problems.map(({ path }: { path: string }) => path).sort()]).toEqual([1, paths])
  }
  for (const path of paths) expect(fs.existsSync(join(backup, path))).toBe(false)
  const copy = newProject()
  const restored = await copy.servo('restore', backup)
  expect(restored).toMatchObject({ code: 1, stdout: expect.stringContaining('without 3 files') })
  for (const path of paths) expect(restored.stdout).toMatch(new RegExp(`^lost .*${path}`, 'm'))
  const verified = JSON.parse((await copy.servo('verify', '--data', '--json')).stdout)
  expect(verified.problems.map(({ path }: { path: string }) => path).sort()).toEqual(paths)
  expect(await copy.servo('show', 'small')).toMatchObject({ code: 0 })
})

test('[K8][K9] what is damaged in a backup is named by a restore, and mended by the next backup', async () => {
  const project = await madeProject()
  const backup = project.file('backup')
  expect(await project.servo('backup', 'backup')).toMatchObject({ code: 0 })
  const whole = digests(backup)
  const all = Object.keys(whole).filter((path) => !/lease|lists|backup\.json|boundary|manifest\.json$/.test(path))
  const value = valueFile(backup, 'first')
  flip(value)
  expect(await newProject().servo('restore', backup)).toMatchObject({
    code: 1,
    stdout: expect.stringContaining(`${printed(value)} is damaged in the backup`),
  })
  for (const [i, path] of all.entries()) if (path !== value) [flip, cut, fs.rmSync][i % 3]?.(path)
  const mended = await project.json('backup', 'backup')
  expect(mended.mended.toSorted()).toEqual(all.map((path) => path.slice(backup.length + 1)))
  for (const path of all) expect([path, digests(backup)[path]]).toEqual([path, whole[path]])
  const [list = ''] = filesBelow(join(backup, 'lists'))
  flip(list)
  expect(await newProject().servo('restore', backup)).toMatchObject({ code: 1, stderr: expect.stringContaining('list') })
  expect(await project.json('backup', 'backup')).toMatchObject({ copied: { files: 0 } })
  const copy = newProject()
  expect(await copy.servo('restore', backup)).toMatchObject({ code: 0 })
  expect(await copy.json('verify', '--data')).toMatchObject({ ok: true })
})

test('[K7] a backup that is refused leaves the folder as it was, secrets included', async () => {
  const [project, other] = [await madeProject(), await madeProject()]
  const backup = project.file('backup')
  expect(await project.servo('backup', backup)).toMatchObject({ code: 0 })
  const before = digests(backup)
  expect(await other.servo('backup', backup)).toMatchObject({ code: 2, stderr: expect.stringContaining('does not have') })
  const ofBackup = Object.entries(digests(backup)).filter(([path]) => !path.includes('/lease/'))
  expect(Object.fromEntries(ofBackup)).toEqual(
    Object.fromEntries(Object.entries(before).filter(([path]) => !path.includes('/lease/'))),
  )
  const copy = newProject()
  expect(await copy.servo('restore', backup)).toMatchObject({ code: 0 })
})

test('[K9] a restore brings back no value that was removed, and writes nothing to the backup', async () => {
  const project = await madeProject()
  expect(await project.servo('backup', 'backup')).toMatchObject({ code: 0 })
  expect(await project.servo('run', 'replaced')).toMatchObject({ code: 0 })
  expect(await project.servo('gc', '--yes')).toMatchObject({ code: 0, stdout: expect.stringContaining('1 value') })
  expect(await project.servo('backup', 'backup')).toMatchObject({ code: 0 })
  const backup = project.file('backup')
  // For whoever looks for it.
  expect(filesBelow(join(backup, WORKSPACE, 'data/replaced'))).toHaveLength(2)
  const changes = () =>
    fs.readdirSync(backup, { recursive: true, encoding: 'utf8' }).map((path) => [path, fs.statSync(join(backup, path)).mtimeMs])
  const before = changes()
  const copy = newProject()
  expect(await copy.servo('restore', backup)).toMatchObject({ code: 0 })
  expect(changes()).toEqual(before)
  expect(await copy.json('verify', '--data')).toMatchObject({ ok: true, values: { checked: 3, removed: 1, not_deleted: 0 } })
  expect(await project.servo('backup', 'backup', '--prune')).toMatchObject({ code: 0 })
  expect(filesBelow(join(backup, WORKSPACE, 'data/replaced'))).toHaveLength(1)
})

test('a backup into the state itself is refused, also through a link', async () => {
  const project = await madeProject()
  fs.symlinkSync('.servo', project.file('link'))
  fs.mkdirSync(project.file('.servo/inside'))
  fs.symlinkSync('.servo/inside', project.file('other-link'))
  for (const dir of ['link/backup', 'other-link', 'other-link/deeper/still', '.servo'])
    expect(await project.servo('backup', dir)).toMatchObject({ code: 2, stderr: expect.stringContaining('is inside') })
  expect(fs.readdirSync(project.file('.servo/inside'))).toEqual([])
})
