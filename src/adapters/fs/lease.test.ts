import { execFileSync, spawn } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { systemClock as clock } from '../../adapters/system/clock.ts'
import { isServoError } from '../../lib/error.ts'
import type { HeldLease } from '../../ports/lease.ts'
import { leaseConformance } from '../../testing/conformance/lease.ts'
import { folderLease } from '../../testing/folder-lease.ts'
import { VirtualClock } from '../../testing/virtual-clock.ts'
import { type WatchFolder, watchFolder } from './folder-watch.ts'
import { type FsLeaseOptions, fsLease } from './lease.ts'
import { isProvenDead, ownIdentity } from './process-identity.ts'

leaseConformance('a lease in a folder', folderLease(watchFolder))

function leaseFolder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'servo-lease-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  return join(dir, 'lease')
}

const someone = (name = 'someone') => ({ name, term: 'standing' }) as const

async function claimed(dir: string, options: Partial<FsLeaseOptions> = {}): Promise<HeldLease> {
  const answer = await fsLease(dir, { clock, ...options }).claim(someone())
  if (!answer.held) throw new Error('it is held by another')
  return answer
}

/** The first claim, as if another process had made it. */
async function forge(dir: string, changes: object): Promise<void> {
  await claimed(dir)
  const file = join(dir, '000000000001.json')
  writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), ...changes }))
}

/** What is open in this process, by name. */
function openFiles(): string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)]
    } catch {
      // The listing itself, which is over.
      return []
    }
  })
}

/** So long that a test which waits for it fails. */
const LONG_MS = 600_000

describe('a lease in a folder', () => {
  test('[E2] does not come along when the folder is copied, and the copy can be claimed at once', async () => {
    const dir = leaseFolder()
    const held = await claimed(dir)
    await held.announce('http://127.0.0.1:4400')
    const copy = join(dir, '..', 'copy')
    execFileSync('cp', ['-a', dir, copy])
    const copied = fsLease(copy, { clock, periodMs: LONG_MS })
    expect(await copied.leader()).toBeUndefined()
    expect(await copied.claim(someone('copy'))).toMatchObject({ held: true, number: 2 })
    expect(held.isHeld).toBe(true)
    expect(await held.confirm()).toBe(true)
    expect(await fsLease(dir, { clock }).leader()).toMatchObject({ number: 1, address: 'http://127.0.0.1:4400' })
  })

  test('[E2] goes with the folder when that is moved away from under its holder', async () => {
    const dir = leaseFolder()
    const held = await claimed(dir)
    renameSync(dir, `${dir}-moved`)
    expect(await held.confirm()).toBe(false)
    expect(await fsLease(`${dir}-moved`, { clock }).leader()).toMatchObject({ number: 1 })
    await claimed(dir, { periodMs: LONG_MS })
  })

  test('[E6] is lost within a third of a period when a copy is put where its folder was, and its holder is told', async () => {
    const dir = leaseFolder()
    const time = new VirtualClock()
    // Nobody calls: a watch stays with the folder that was moved away.
    const held = await claimed(dir, { clock: time, periodMs: 9_000, watch: () => () => undefined })
    let isTold = false
    held.onLost(() => {
      isTold = true
    })
    await time.advance(30_000)
    expect(held.isHeld).toBe(true)
    renameSync(dir, `${dir}-moved`)
    execFileSync('cp', ['-a', `${dir}-moved`, dir])
    expect(readdirSync(dir), 'the claim of the same number').toContain('000000000001.json')
    await time.advance(3_000)
    expect(held.isHeld).toBe(false)
    expect(isTold).toBe(true)
    expect(await held.confirm()).toBe(false)
  })

  test('[E2] is lost when its folder is deleted and restored, though the system may give the numbers of deleted folders again', async () => {
    const dir = leaseFolder()
    // Nobody calls: the watch went with the folder.
    const held = await claimed(dir, { watch: () => () => undefined })
    const { ino } = statSync(dir)
    const backup = `${dir}-backup`
    execFileSync('cp', ['-a', dir, backup])
    rmSync(dir, { recursive: true })
    // Whether a system gives the number again, and when, is its own affair: it cannot while the folder is open.
    if (process.platform === 'linux') expect(openFiles()).toContain(`${dir} (deleted)`)
    execFileSync('cp', ['-a', backup, dir])
    expect(statSync(dir).ino).not.toBe(ino)
    expect(await held.confirm()).toBe(false)
    expect(await claimed(dir, { periodMs: LONG_MS })).toMatchObject({ number: 2 })
  })

  test('[E2] is kept when its folder is backed up by hard links, when its rights change, and when others write into it', async () => {
    const dir = leaseFolder()
    const held = await claimed(dir)
    execFileSync('cp', ['-al', dir, `${dir}-backup`])
    rmSync(`${dir}-backup`, { recursive: true })
    chmodSync(dir, 0o700)
    writeFileSync(join(dir, 'note'), '')
    expect(await held.confirm()).toBe(true)
  })

  test('keeps nothing open once it is released, lost, or was claimed by another', {
    skip: process.platform !== 'linux',
  }, async () => {
    const dir = leaseFolder()
    const lease = fsLease(dir, { clock })
    const held = await lease.claim(someone())
    expect((await lease.claim(someone('other'))).held).toBe(false)
    expect(openFiles().filter((path) => path === dir)).toHaveLength(1)
    await (held as HeldLease).release()
    expect(openFiles()).not.toContain(dir)
    const next = await claimed(dir)
    renameSync(dir, `${dir}-moved`)
    expect(await next.confirm()).toBe(false)
    expect(openFiles()).not.toContain(`${dir}-moved`)
  })

  /** What can stand in a folder and is no file. */
  const strangers: [string, (path: string) => void][] = [
    ['a pipe', (path) => execFileSync('mkfifo', [path])],
    ['a folder', (path) => mkdirSync(path)],
    ['a symlink to nothing', (path) => symlinkSync('nothing', path)],
  ]
  const damage = { kind: 'corrupt', code: 'lease_damaged', hint: expect.stringMatching(/^Delete .* while no server runs\.$/) }

  test.each(strangers)(
    '[E2] with %s in the place of a claim or a sign is damaged, and that is said at once',
    async (_, make) => {
      for (const name of ['000000000001.json', '000000000001.sign.json']) {
        const dir = leaseFolder()
        mkdirSync(dir)
        if (name !== '000000000001.json') await (await claimed(dir)).release()
        rmSync(join(dir, name), { force: true })
        make(join(dir, name))
        await expect(fsLease(dir, { clock }).leader()).rejects.toMatchObject(damage)
        await expect(fsLease(dir, { clock }).claim(someone())).rejects.toMatchObject(damage)
      }
    },
  )

  test.each(strangers.filter(([what]) => what !== 'a folder'))('[E2] with %s as its folder is damaged', async (_, make) => {
    const dir = leaseFolder()
    make(dir)
    expect(await fsLease(dir, { clock }).leader()).toBeUndefined()
    await expect(fsLease(dir, { clock }).claim(someone())).rejects.toMatchObject(damage)
  })

  test('whose next sign cannot be written, or that cannot keep temporary files, is damaged', async () => {
    const dir = leaseFolder()
    mkdirSync(join(dir, '000000000001.sign.json'), { recursive: true })
    const held = await claimed(dir)
    await expect(held.announce('http://127.0.0.1:4400')).rejects.toMatchObject(damage)
    await held.release()
    const other = leaseFolder()
    mkdirSync(other)
    writeFileSync(join(other, '.tmp'), '')
    await expect(claimed(other)).rejects.toMatchObject(damage)
  })

  test('may stand in a folder that is reached by a symlink', async () => {
    const dir = leaseFolder()
    mkdirSync(`${dir}-elsewhere`)
    symlinkSync(`${dir}-elsewhere`, dir)
    const held = await claimed(dir)
    expect(await held.confirm()).toBe(true)
  })

  test('[E3] is free when its process has ended, when another was given its number, and when the machine was started again', async () => {
    const ended = spawn(process.execPath, ['-e', ''])
    await new Promise((resolve) => ended.once('exit', resolve))
    const outside = 'pid:[4026531836]'
    for (const changes of [{ pid: ended.pid }, { since: '1' }]) {
      const dir = leaseFolder()
      await forge(dir, changes)
      expect(await fsLease(dir, { clock }).leader()).toBeUndefined()
      expect(await claimed(dir, { periodMs: LONG_MS })).toMatchObject({ number: 2 })
    }
    const own = { ...ownIdentity(), machine_id: 'machine', boot_id: 'now', pid_namespace: outside }
    expect(isProvenDead({ ...own, boot_id: 'before' }, own)).toBe(true)
  })

  test('[E3] is not free because of what cannot be known', () => {
    const own = ownIdentity()
    const gone = { ...own, pid: 2 ** 22 + 1 }
    expect(isProvenDead(own, own)).toBe(false)
    // Another container, another machine, another start of a machine that may be another, a process of which we see too little.
    expect(isProvenDead({ ...gone, pid_namespace: 'pid:[1]' }, own)).toBe(false)
    expect(isProvenDead({ ...gone, boot_id: 'other', host: 'elsewhere' }, own)).toBe(false)
    expect(isProvenDead({ ...gone, boot_id: 'other', machine_id: null }, own)).toBe(false)
    expect(isProvenDead({ ...gone, boot_id: 'other', pid_namespace: 'pid:[1]' }, own)).toBe(false)
    expect(isProvenDead({ ...gone, boot_id: null, host: 'elsewhere' }, own)).toBe(false)
    expect(isProvenDead({ ...own, boot_id: null }, own)).toBe(false)
  })

  test.skipIf(process.platform !== 'linux')(
    '[E3] is free when its process has ended though nobody asked how it did',
    async () => {
      // Becomes another program, which knows of no child.
      const parent = spawn('sh', ['-c', 'sleep 60 & echo $!; exec sleep 60'])
      onTestFinished(() => void parent.kill('SIGKILL'))
      const pid = Number(await new Promise<Buffer>((resolve) => parent.stdout.once('data', resolve)))
      const fields = (): string[] => (readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1] ?? '').split(' ')
      const dir = leaseFolder()
      await forge(dir, { pid, since: fields()[19] })
      expect(await fsLease(dir, { clock }).leader()).toMatchObject({ pid })
      process.kill(pid, 'SIGKILL')
      await expect.poll(() => fields()[0], { timeout: 10_000 }).toBe('Z')
      expect(await fsLease(dir, { clock }).leader()).toBeUndefined()
      await claimed(dir, { periodMs: LONG_MS })
    },
  )

  test('[E4] of a machine that nothing is known of is waited for', async () => {
    const dir = leaseFolder()
    // This process is not the holder of the folder's claim any more: it would answer.
    const first = await claimed(dir)
    await first.release()
    rmSync(join(dir, '000000000001.sign.json'))
    const file = join(dir, '000000000001.json')
    writeFileSync(file, readFileSync(file, 'utf8').replace(/"(boot_id|host)": "[^"]*"/g, '"$1": "elsewhere"'))
    expect(await fsLease(dir, { clock }).leader()).toMatchObject({ host: 'elsewhere' })
    const since = performance.now()
    expect(await claimed(dir, { periodMs: 300 })).toMatchObject({ number: 2 })
    expect(performance.now() - since).toBeGreaterThanOrEqual(300)
  })

  test('whose claim cannot be read belongs to somebody: one who answers keeps it, one who does not is replaced', async () => {
    const dir = leaseFolder()
    const held = await claimed(dir)
    await held.announce('http://127.0.0.1:4400')
    writeFileSync(join(dir, '000000000001.json'), 'half a fi')
    expect(await fsLease(dir, { clock }).claim(someone())).toMatchObject({
      held: false,
      leader: { address: 'http://127.0.0.1:4400' },
    })
    await held.release()
    rmSync(join(dir, '000000000001.sign.json'))
    expect(await claimed(dir, { periodMs: 100 })).toMatchObject({ number: 2 })
  })

  test('keeps one claim, and nothing of those before it', async () => {
    const dir = leaseFolder()
    for (let i = 0; i < 5; i++) {
      const held = await claimed(dir)
      await held.announce('http://127.0.0.1:4400')
      expect((await fsLease(dir, { clock }).claim(someone())).held).toBe(false)
      await held.release()
    }
    const names = readdirSync(dir).filter((name) => name !== '.tmp')
    expect(names.sort()).toEqual(['000000000005.json', '000000000005.sign.json'])
  })

  test('[E6] costs its holder nothing while nobody asks', async () => {
    const dir = leaseFolder()
    let looks = 0
    const counted: WatchFolder = (folder, changed, deaf) =>
      watchFolder(
        folder,
        (name) => {
          looks += 1
          changed(name)
        },
        deaf,
      )
    const held = await claimed(dir, { periodMs: 300, watch: counted })
    await sleep(50)
    const [before, looked] = [readdirSync(dir).map((name) => statSync(join(dir, name)).mtimeMs), looks]
    await sleep(1_000)
    expect(readdirSync(dir).map((name) => statSync(join(dir, name)).mtimeMs)).toEqual(before)
    expect(looks).toBe(looked)
    expect(await held.confirm()).toBe(true)
  })

  test('asking who leads makes no folder, and a folder that cannot be read is an outage', async () => {
    const dir = leaseFolder()
    expect(await fsLease(dir, { clock }).leader()).toBeUndefined()
    expect(existsSync(dir)).toBe(false)
    const file = join(dir, '..', 'file')
    writeFileSync(file, '')
    const error = await fsLease(file, { clock })
      .claim(someone())
      .catch((thrown: unknown) => thrown)
    expect(isServoError(error)).toBe(true)
  })

  test('[E5] a holder that cannot give a sign does not lead until it can', async () => {
    const dir = leaseFolder()
    const held = await claimed(dir, { periodMs: LONG_MS })
    // A folder in the place of the file makes replacing it fail.
    mkdirSync(join(dir, '000000000001.sign.json', 'full'), { recursive: true })
    writeFileSync(join(dir, '000000000001.challenge-x'), '')
    await expect.poll(() => held.isHeld).toBe(false)
    await expect(held.confirm()).rejects.toMatchObject({ name: 'ServoError' })
    expect(held.isHeld).toBe(false)
    rmSync(join(dir, '000000000001.sign.json'), { recursive: true })
    expect(await held.confirm()).toBe(true)
    expect(held.isHeld).toBe(true)
  })
})
