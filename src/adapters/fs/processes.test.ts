import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { fsStore } from './object-store.ts'

/** Each is a process, so `npm test` makes do with ten. */
const KILLS = Number(process.env['SERVO_KILLS'] ?? 6)
/** Longer than so many processes need to start on two shared cores. */
const PATIENCE_MS = 60_000 + KILLS * 2_000

describe('a folder shared by processes', { timeout: PATIENCE_MS }, () => {
  let dir: string
  const children: ChildProcess[] = []

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'servo-shared-'))
    await chmod(dir, 0o755)
  })

  afterEach(async () => {
    for (const child of children.splice(0)) child.kill('SIGKILL')
    await rm(dir, { recursive: true })
  })

  /** Runs a function in a process of its own. It sees its arguments and `fsStore`, nothing else of this file. */
  function inProcess<Args extends unknown[]>(program: Program<Args>, args: Args, command: string[] = []) {
    const source = `import { fsStore } from ${JSON.stringify(new URL('./object-store.ts', import.meta.url).href)}
      await (${program})(fsStore, ...${JSON.stringify(args)})`
    const [file, ...rest] = [...command, process.execPath, '--input-type=module', '--eval', source]
    const child = spawn(file!, rest, { stdio: ['pipe', 'pipe', 'inherit'] })
    children.push(child)
    const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
    return { child, lines: createInterface(child.stdout), ended }
  }

  async function linesOf(started: ReturnType<typeof inProcess>): Promise<string[]> {
    const lines: string[] = []
    started.lines.on('line', (line) => lines.push(line))
    await started.ended
    expect(started.child.exitCode).toBe(0)
    return lines
  }

  it('has one winner for each object that four of them race for', async () => {
    const racers = [0, 1, 2, 3].map((racer) => inProcess(raceForObjects, [dir, racer]))
    // Each says it is ready, and all are let go together.
    await Promise.all(racers.map(({ lines }) => new Promise((resolve) => lines.once('line', resolve))))
    const wins = racers.map(linesOf)
    for (const { child } of racers) child.stdin.end('go')

    const winners = new Map<string, number>()
    for (const [racer, won] of (await Promise.all(wins)).entries()) {
      for (const path of won) {
        expect(winners.has(path), `${path} was won twice`).toBe(false)
        winners.set(path, racer)
      }
    }
    const store = fsStore(dir)
    let count = 0
    for await (const { path } of store.list('')) {
      expect((await store.get(path))![0], path).toBe(winners.get(path))
      count += 1
    }
    expect(count).toBe(200)
    expect(winners.size).toBe(200)
    expect(new Set(winners.values()).size, 'it was a race').toBeGreaterThan(1)
    expect(await readdir(join(dir, '.tmp'))).toEqual([])
    await store.close()
  })

  it('holds only whole objects, and all that were acknowledged, however often a process was killed', async () => {
    const store = fsStore(dir)
    const acknowledged: string[] = []
    let halfway = 0
    for (let round = 0; round < KILLS; round += 1) {
      const { child, lines, ended } = inProcess(createForEver, [dir, round])
      let count = 0
      lines.on('line', (path) => {
        acknowledged.push(path)
        count += 1
        if (count === 1 + ((round * 7) % 23)) child.kill('SIGKILL')
      })
      await ended
      expect(child.signalCode).toBe('SIGKILL')
      halfway += (await readdir(join(dir, '.tmp'))).length
    }
    expect(halfway, 'some were killed halfway').toBeGreaterThan(0)

    const whole = new Set<string>()
    for await (const { path } of store.list('')) {
      const bytes = Buffer.from((await store.get(path))!)
      // An object is the digest of the rest, followed by the rest.
      expect(createHash('sha256').update(bytes.subarray(32)).digest().equals(bytes.subarray(0, 32)), path).toBe(true)
      whole.add(path)
    }
    expect(acknowledged.filter((path) => !whole.has(path))).toEqual([])
    await store.sweepTemp(0)
    expect(await readdir(join(dir, '.tmp'))).toEqual([])
    expect(await store.create('killed/after', new Uint8Array(1))).toBe('written')
    await store.close()
  })

  it('reports a full disk as an outage, leaves nothing behind, and works again when there is space', async () => {
    const tiny = mountTiny(dir)
    const limited = tiny ?? ['sh', '-c', 'ulimit -f 1024 && exec "$0" "$@"']
    const [report] = await linesOf(inProcess(fillDisk, [dir, tiny !== undefined], limited))
    const outage = { kind: 'unavailable', code: 'disk_full', temporaryFiles: [] }
    expect(JSON.parse(report!)).toEqual({
      tooLarge: outage,
      ...(tiny === undefined ? {} : { oneTooMany: outage, afterDelete: 'written' }),
      sizes: [20_000],
      small: 'written',
    })
  })

  it.each([
    ['mounted read-only', true],
    ['of somebody else', false],
  ])('reports a folder %s as an outage, still reads it, and writes again when it may', async (_, mounted) => {
    const mount = mounted ? mountTiny(dir) : undefined
    const [report] = await linesOf(inProcess(denyWrites, [dir, mount !== undefined], mount))
    const outage = { kind: 'unavailable', code: 'read_only' }
    expect(JSON.parse(report!)).toEqual({
      create: outage,
      createInNewFolder: outage,
      put: outage,
      delete: outage,
      read: 3,
      temporaryFiles: [],
      listed: ['folder/object'],
      allowed: 'written',
    })
  })
})

/**
 * A command that runs another with a disk of 1 MiB mounted at `dir`, seen by that process only, or undefined where that
 * is not allowed: root may do it, and where user namespaces are on, anybody may.
 */
function mountTiny(dir: string): string[] | undefined {
  const mounting = ['sh', '-c', 'mount -t tmpfs -o size=1m,mode=755 tmpfs "$0" && exec "$@"', dir]
  const ways = [
    ['unshare', '--mount', ...mounting],
    ['unshare', '--user', '--map-root-user', '--mount', ...mounting],
  ]
  return ways.find(([file, ...args]) => spawnSync(file!, [...args, 'true']).status === 0)
}

// The programs below run in other processes, as text: what they need they are given or ask the process for.

type Program<Args extends unknown[]> = (open: typeof fsStore, ...args: Args) => Promise<void>

async function raceForObjects(open: typeof fsStore, dir: string, racer: number): Promise<void> {
  const store = open(dir)
  console.log('ready')
  await new Promise((resolve) => process.stdin.resume().once('end', resolve))
  const all = Array.from({ length: 200 }, (_, index) => `race/${Math.floor(index / 10)}/folder/${index}`)
  // Each begins elsewhere: one that is let go a moment before the others would else win everything.
  const paths = [...all.slice(racer * 50), ...all.slice(0, racer * 50)]
  // Sixteen at a time, so that each gets far enough for the others to be everywhere around it.
  const lanes = Array.from({ length: 16 }, async () => {
    for (let path = paths.shift(); path !== undefined; path = paths.shift()) {
      if ((await store.create(path, new Uint8Array(5_000).fill(racer))) === 'written') console.log(path)
    }
  })
  await Promise.all(lanes)
  await store.close()
}

async function createForEver(open: typeof fsStore, dir: string, round: number): Promise<void> {
  const { createHash, randomBytes } = process.getBuiltinModule('node:crypto')
  const store = open(dir)
  const body = () => {
    const rest = randomBytes(Math.floor(Math.random() * 200_000))
    return Buffer.concat([createHash('sha256').update(rest).digest(), rest])
  }
  const lanes = Array.from({ length: 8 }, async (_, lane) => {
    for (let count = 0; ; count += 1) {
      const path = `killed/${round}/${lane}/${count}`
      await store.create(path, body())
      console.log(path)
      await store.put('killed/newest', body())
    }
  })
  await Promise.all(lanes)
}

async function fillDisk(open: typeof fsStore, dir: string, tiny: boolean): Promise<void> {
  const { readdir } = process.getBuiltinModule('node:fs/promises')
  const store = open(dir)
  const attempt = async (path: string, size: number) => {
    try {
      return await store.create(path, new Uint8Array(size).fill(1))
    } catch (error) {
      const { kind, code } = error as { kind: string; code: string }
      return { kind, code, temporaryFiles: await readdir(`${dir}/.tmp`) }
    }
  }
  const report: Record<string, unknown> = { tooLarge: await attempt('a/large', 8_000_000) }
  if (tiny) {
    let count = 0
    let answer: unknown = 'written'
    for (; answer === 'written'; count += 1) answer = await attempt(`b/${count}`, 20_000)
    report['oneTooMany'] = answer
    await store.delete('b/0')
    report['afterDelete'] = await attempt('b/again', 20_000)
    await store.delete('b/1')
  } else await attempt('b/0', 20_000)
  report['small'] = await attempt('a/small', 10_000)
  const sizes = new Set<number | undefined>()
  for await (const { path } of store.list('b/')) sizes.add(await store.size(path))
  report['sizes'] = [...sizes]
  console.log(JSON.stringify(report))
  await store.close()
}

async function denyWrites(open: typeof fsStore, dir: string, mounted: boolean): Promise<void> {
  const { execFileSync } = process.getBuiltinModule('node:child_process')
  const { chmodSync, readdirSync } = process.getBuiltinModule('node:fs')
  const store = open(dir)
  await store.create('folder/object', new Uint8Array(3))
  const folders = [dir, `${dir}/.tmp`, `${dir}/folder`]
  // Its owner lets others read it.
  for (const folder of folders) chmodSync(folder, 0o755)
  chmodSync(`${dir}/folder/object`, 0o644)
  const allow = (allowed: boolean) => {
    if (mounted) execFileSync('mount', ['-o', allowed ? 'remount,bind,rw' : 'remount,bind,ro', dir])
    // Permissions do not bind root, so root becomes nobody for a while; anybody else can lock themselves out.
    else if (process.getuid!() === 0) process.seteuid!(allowed ? 0 : 65_534)
    else for (const folder of folders) chmodSync(folder, allowed ? 0o755 : 0o555)
  }
  const attempt = (request: Promise<unknown>) => request.catch(({ kind, code }) => ({ kind, code }))
  allow(false)
  const report: Record<string, unknown> = {
    create: await attempt(store.create('folder/new', new Uint8Array(3))),
    createInNewFolder: await attempt(store.create('new/new', new Uint8Array(3))),
    put: await attempt(store.put('folder/object', new Uint8Array(9))),
    delete: await attempt(store.delete('folder/object')),
    read: (await store.get('folder/object'))?.length,
    temporaryFiles: readdirSync(`${dir}/.tmp`),
  }
  const listed: string[] = []
  for await (const { path } of store.list('')) listed.push(path)
  report['listed'] = listed
  allow(true)
  report['allowed'] = await attempt(store.create('folder/new', new Uint8Array(3)))
  console.log(JSON.stringify(report))
  await store.close()
}
