import fs from 'node:fs'
import os from 'node:os'
import { dirname, join } from 'node:path'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../../src/adapters/system/clock.ts'
import { type BackupOptions, backUpFolder } from '../../../src/server/backup/backup.ts'
import { type RestoreOptions, restore } from '../../../src/server/backup/restore.ts'
import { Keeping } from './keeping.ts'

const SECRETS = 'local/secrets.json'
let world: Keeping
/** The files of a project, by path. */
let project: Map<string, Uint8Array>

beforeAll(async () => {
  world = await Keeping.open([{ asset_key: 'a' }])
  await world.make('a')
  await world.server.orchestrator.publish()
  project = new Map()
  for await (const { path } of world.store.list('')) project.set(path, (await world.store.get(path))!)
  project.set(SECRETS, Buffer.from(JSON.stringify(await world.memory.secrets.read())))
  project.set(`${world.root}logs/run_1/attempt_1/1.ndjson`, Buffer.from('one\n'))
})

/** A project in a folder, with a folder for its backups beside it. */
function folders() {
  const dir = fs.mkdtempSync(join(os.tmpdir(), 'servo-backup-'))
  onTestFinished(() => fs.rmSync(dir, { recursive: true }))
  const [servoDir, backup, copy] = [join(dir, '.servo'), join(dir, 'backup'), join(dir, 'copy')]
  for (const [path, bytes] of project) {
    fs.mkdirSync(dirname(join(servoDir, path)), { recursive: true })
    fs.writeFileSync(join(servoDir, path), bytes)
  }
  const { scope } = world.memory
  const backUp = (options: Partial<BackupOptions> = {}) =>
    backUpFolder({ servoDir, scope, dir: backup, prune: false, clock: systemClock, check: async () => undefined, ...options })
  const restoring = (check: RestoreOptions['check'] = async () => undefined) =>
    restore({ dir: backup, servoDir: copy, user: 'tester', check })
  return { dir, servoDir, backup, copy, backUp, restoring }
}

/** Takes a lease from its holder, as if that had been stopped for long, and ends at once. */
function takeFrom(dir: string): void {
  const name = fs.readdirSync(join(dir, 'lease')).filter((each) => /^\d+\.json$/.test(each))
  const claim = JSON.parse(fs.readFileSync(join(dir, 'lease', name[0]!), 'utf8'))
  const next = { ...claim, epoch: claim.epoch + 1, since: 'long ago' }
  fs.writeFileSync(join(dir, 'lease', `${String(next.epoch).padStart(12, '0')}.json`), JSON.stringify(next))
}

const filesBelow = (dir: string): string[] =>
  fs.readdirSync(dir, { recursive: true, withFileTypes: true }).flatMap((each) => (each.isFile() ? each.name : []))

/** What a copy lacks of the project. Of the manifests it needs only the newest. */
const missingIn = (dir: string): string[] =>
  [...project.keys()].filter((path) => !path.includes('/manifests/') && !fs.existsSync(join(dir, path)))

test('[K7] a backup that was taken over while it was stopped says so, and the newer one stays', async () => {
  const { backup, backUp } = folders()
  await backUp()
  let newer = ''
  const stopped = backUp({
    check: async () => {
      takeFrom(backup)
      await backUp()
      newer = fs.readFileSync(join(backup, 'backup.json'), 'utf8')
    },
  })
  await expect(stopped).rejects.toMatchObject({ kind: 'conflict', code: 'backup_taken_over' })
  expect(fs.readFileSync(join(backup, 'backup.json'), 'utf8')).toBe(newer)
})

test('[K9] while a restore is under way, another to the same place is refused, and the first ends well', async () => {
  const { dir, copy, backUp, restoring } = folders()
  await backUp()
  await restoring(async () => {
    await expect(restoring()).rejects.toMatchObject({ kind: 'conflict', code: 'restore_in_progress' })
  })
  expect(missingIn(copy)).toEqual([])
  expect(fs.readdirSync(dir).sort()).toEqual(['.servo', 'backup', 'copy'])
})

test('[K9] a restore that was taken over while it was stopped puts nothing in place, and does not touch what the other one has', async () => {
  const { dir, copy, backUp, restoring } = folders()
  await backUp()
  let isAwake: () => void = () => undefined
  const awake = new Promise<void>((resolve) => {
    isAwake = resolve
  })
  let other: Promise<unknown> | undefined
  const stopped = restoring(async () => {
    takeFrom(join(dir, '.copy-restoring'))
    // The other one has copied everything when this one goes on.
    await new Promise<void>((resolve) => {
      other = restoring(async () => {
        resolve()
        await awake
      })
    })
  })
  await expect(stopped).rejects.toMatchObject({ code: 'restore_taken_over' })
  expect(fs.existsSync(copy)).toBe(false)
  isAwake()
  await other
  expect(missingIn(copy)).toEqual([])
  expect(fs.readdirSync(dir).sort()).toEqual(['.servo', 'backup', 'copy'])
})

test.each([
  ['deleted', (file: string) => fs.rmSync(file)],
  ['damaged', (file: string) => fs.truncateSync(file, 30)],
])('[K8] secrets that are %s in the project stay whole in the backup, and are named', async (_, damage) => {
  const { servoDir, copy, backUp, restoring } = folders()
  await backUp()
  damage(join(servoDir, SECRETS))
  for (let round = 0; round < 2; round++)
    expect(await backUp({ prune: true })).toMatchObject({ problems: [{ path: SECRETS }], copied: { files: 0 } })
  expect(await restoring()).toMatchObject({ problems: [] })
  expect(fs.readFileSync(join(copy, SECRETS))).toEqual(project.get(SECRETS))
})

test('[K8][K9] secrets that are damaged before the first backup are named, left out, and made anew by a restore', async () => {
  const { servoDir, copy, backUp, restoring } = folders()
  fs.truncateSync(join(servoDir, SECRETS), 30)
  expect(await backUp()).toMatchObject({ problems: [{ path: SECRETS }] })
  expect(await restoring()).toMatchObject({ problems: [{ path: SECRETS }] })
  expect(JSON.parse(fs.readFileSync(join(copy, SECRETS), 'utf8'))).toHaveProperty('api_token')
})

test('[K8] secrets that are damaged in the backup and gone in the project are named as lost', async () => {
  const { servoDir, backup, backUp } = folders()
  await backUp()
  fs.rmSync(join(servoDir, SECRETS))
  fs.writeFileSync(join(backup, SECRETS), Buffer.alloc(project.get(SECRETS)!.length))
  expect(await backUp()).toMatchObject({ problems: [{ path: SECRETS }, { path: SECRETS }] })
})

test.each(['backup.json', 'lists'])('[K8] the next backup makes %s again if it is damaged, and says so', async (name) => {
  const { servoDir, backup, copy, backUp, restoring } = folders()
  await backUp()
  // Now the log lies under another name in the backup.
  const log = join(servoDir, world.root, 'logs/run_1/attempt_1/1.ndjson')
  fs.appendFileSync(log, 'two\n')
  await backUp()
  const path = name === 'lists' ? join(name, fs.readdirSync(join(backup, name))[0]!) : name
  fs.truncateSync(join(backup, path), 20)
  await expect(restoring()).rejects.toMatchObject({ kind: 'corrupt', hint: expect.stringContaining('next servo backup') })
  expect(await backUp()).toMatchObject({ problems: [], mended: [path], copied: { files: 0 } })
  expect(await restoring()).toMatchObject({ problems: [] })
  expect(missingIn(copy)).toEqual([])
  expect(filesBelow(join(copy, world.root, 'logs'))).toEqual(['1.ndjson'])
  expect(fs.readFileSync(join(copy, world.root, 'logs/run_1/attempt_1/1.ndjson'), 'utf8')).toBe('one\ntwo\n')
})

test('a damaged record does not let the backup of another project or workspace be replaced', async () => {
  const { backup, servoDir, backUp } = folders()
  await backUp()
  fs.truncateSync(join(backup, 'backup.json'), 20)
  const before = filesBelow(join(backup, 'tenant=acme')).sort()
  await expect(backUp({ scope: { tenant_id: 'acme', workspace_id: 'other' } })).rejects.toMatchObject({
    code: 'damaged_record',
  })
  fs.rmSync(join(servoDir, world.root, 'ledger'), { recursive: true })
  await expect(backUp()).rejects.toMatchObject({ code: 'another_ledger' })
  expect(filesBelow(join(backup, 'tenant=acme')).sort()).toEqual(before)
})

test('a backup removes the temporary files that a killed one left', async () => {
  const { backup, backUp } = folders()
  await backUp()
  fs.writeFileSync(join(backup, '.tmp/copy-1-1'), 'half a value')
  await backUp()
  expect(fs.readdirSync(join(backup, '.tmp'))).toEqual([])
})

test('[K9] a restore that goes on when the one that took over has ended leaves the state alone, and nothing beside it', async () => {
  const { dir, copy, backUp, restoring } = folders()
  await backUp()
  const stopped = restoring(async () => {
    takeFrom(join(dir, '.copy-restoring'))
    await restoring()
  })
  await expect(stopped).rejects.toMatchObject({ code: 'restore_taken_over' })
  expect(missingIn(copy)).toEqual([])
  expect(fs.readdirSync(dir).sort()).toEqual(['.servo', 'backup', 'copy'])
})
