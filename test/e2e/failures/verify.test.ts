import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { checksummedJson } from '../../../src/engine/files/checksummed-json.ts'
import { projectOf, type TestProject } from '../support/project.ts'

const ROOT = '.servo/tenant=default/workspace=default'
const MANIFESTS = `${ROOT}/manifests/orchestration`
const ASSET = `import { asset } from 'servo-flow'
export const one = asset('one', { run: () => ({ amount: 100 }) })
`

const filesBelow = (project: TestProject, folder: string): string[] =>
  fs
    .readdirSync(project.file(folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name))
    .sort()

const lines = (text: string, label: string): string[] => text.split('\n').filter((line) => line.startsWith(label))

test('[S14][L9] what is damaged or missing is named in a line each by verify and by a start, and mended by rebuild', async () => {
  const project = projectOf({ 'assets/one.ts': ASSET })
  expect(await project.servo('run', 'one')).toMatchObject({ code: 0, stderr: '' })
  const sound = await project.servo('verify', '--data')
  expect(sound.stdout).toMatch(/^ok .*; the tables match the ledger\n\s+stored values: \d+ match/)
  expect(sound.code).toBe(0)

  // A start says what it found, and goes on.
  const newest = filesBelow(project, MANIFESTS).at(-1)!
  fs.rmSync(newest)
  const rerun = await project.servo('run', 'one', '--key', 'again')
  expect(lines(rerun.stderr, 'warning: damage found:')).toEqual([
    expect.stringContaining(`${path.basename(newest)} is missing`),
  ])
  expect(rerun.code).toBe(0)
  expect(await project.servo('verify')).toMatchObject({ code: 0 })

  const [first, second] = filesBelow(project, `${ROOT}/ledger`) as [string, string]
  const bytes = fs.readFileSync(first)
  fs.renameSync(second, first)
  fs.writeFileSync(second, bytes)
  fs.rmSync(filesBelow(project, MANIFESTS).at(-1)!)
  const damaged = await project.servo('verify')
  expect(lines(damaged.stdout, 'damaged')).toHaveLength(3)
  for (const name of [path.basename(first), path.basename(second), 'manifests/orchestration/'])
    expect(damaged.stdout).toContain(name)
  expect(damaged.code).toBe(1)
  const rebuilt = await project.servo('rebuild')
  expect(lines(rebuilt.stdout, 'repaired')).toHaveLength(3)
  expect(rebuilt.code).toBe(0)
  expect(await project.servo('verify')).toMatchObject({ code: 0 })

  // What is lost for good is named by all of them.
  fs.truncateSync(first, 100)
  const lost = await project.servo('rebuild')
  expect(lines(lost.stdout, 'lost')).toEqual([expect.stringContaining(path.basename(first))])
  expect(lost.code).toBe(1)

  // Tables that need it stay as they are, until the user does without it.
  for (const file of filesBelow(project, `${ROOT}/state`)) if (/\/l0\/.*parquet$/.test(file)) fs.truncateSync(file, 10)
  const refused = await project.servo('rebuild')
  expect(lines(refused.stdout, 'damaged').length).toBeGreaterThan(0)
  expect(refused.stdout).toMatch(/^not rebuilt .* is unchanged$/m)
  expect(refused.stdout).toContain('servo rebuild --accept-loss')
  expect(refused.code).toBe(1)
  const accepted = await project.servo('rebuild', '--accept-loss')
  expect(accepted.stdout).toMatch(/^rebuilt .* by name, without those that are lost; manifest \d+$/m)
  expect(lines(accepted.stdout, 'lost')).toEqual([expect.stringContaining(path.basename(first))])
  expect(accepted.code).toBe(1)
})

test('[S15] a state that a newer version wrote is refused by every command, and stays as it is', async () => {
  const project = projectOf({ 'assets/one.ts': ASSET })
  expect(await project.servo('run', 'one')).toMatchObject({ code: 0 })
  const newest = filesBelow(project, MANIFESTS).at(-1)!
  const { manifest } = JSON.parse(fs.readFileSync(newest, 'utf8')) as { manifest: { number: number } }
  const next = { ...manifest, format: 99, number: manifest.number + 1 }
  fs.writeFileSync(
    path.join(path.dirname(newest), `${String(next.number).padStart(12, '0')}.json`),
    checksummedJson('manifest', next),
  )
  const before = filesBelow(project, ROOT).filter((file) => !file.includes('/lease/'))
  for (const command of [
    ['verify'],
    ['rebuild'],
    ['run', 'one'],
    ['runs', 'list'],
    ['query', 'select 1'],
    ['backup', '../newer-backup'],
  ]) {
    const { code, stderr } = await project.servo(...command)
    expect({ command, code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining('Upgrade Servo') })
  }
  expect(filesBelow(project, ROOT).filter((file) => !file.includes('/lease/'))).toEqual(before)
})
