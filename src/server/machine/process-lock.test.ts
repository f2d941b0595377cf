import { spawn } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { ProcessLock, urlOfHolder } from './process-lock.ts'

function lockFile(): string {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'servo-lock-'))
  onTestFinished(() => fs.rmSync(dir, { recursive: true }))
  return path.join(dir, 'local', 'server.json')
}

test('whoever has it keeps others out, and says where it can be found', async () => {
  const file = lockFile()
  const lock = await ProcessLock.take(file)
  expect(await urlOfHolder(file)).toBeUndefined()
  await lock.announce('http://127.0.0.1:4400')
  expect(await urlOfHolder(file)).toBe('http://127.0.0.1:4400')
  await expect(ProcessLock.take(file)).rejects.toMatchObject({ code: 'already_running', kind: 'conflict' })
  await lock.release()
  expect(await urlOfHolder(file)).toBeUndefined()
  await (await ProcessLock.take(file)).release()
})

test('a holder that is gone holds nothing, nor does another process that was given its number', async () => {
  const file = lockFile()
  fs.mkdirSync(path.dirname(file))
  const child = spawn(process.execPath, ['-e', ''])
  await new Promise((resolve) => child.once('exit', resolve))
  fs.writeFileSync(file, JSON.stringify({ pid: child.pid, since: '1', url: 'http://127.0.0.1:1' }))
  expect(await urlOfHolder(file)).toBeUndefined()
  // This process lives, but it did not begin when the file says.
  fs.writeFileSync(file, JSON.stringify({ pid: process.pid, since: '1', url: 'http://127.0.0.1:1' }))
  expect(await urlOfHolder(file)).toBeUndefined()
  await (await ProcessLock.take(file)).release()
})

test.skipIf(process.platform !== 'linux')('a holder that has ended holds nothing, though nobody asked how it did', async () => {
  const file = lockFile()
  fs.mkdirSync(path.dirname(file))
  // Becomes another program, which knows of no child.
  const parent = spawn('sh', ['-c', 'sleep 60 & echo $!; exec sleep 60'])
  onTestFinished(() => void parent.kill('SIGKILL'))
  const pid = Number(await new Promise<Buffer>((resolve) => parent.stdout.once('data', resolve)))
  const fields = (): string[] => (fs.readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1] ?? '').split(' ')
  fs.writeFileSync(file, JSON.stringify({ pid, since: fields()[19], url: 'http://127.0.0.1:1' }))
  expect(await urlOfHolder(file)).toBe('http://127.0.0.1:1')
  process.kill(pid, 'SIGKILL')
  await expect.poll(() => fields()[0], { timeout: 10_000 }).toBe('Z')
  expect(await urlOfHolder(file)).toBeUndefined()
  await (await ProcessLock.take(file)).release()
})

test('of many that try at once after a crash, one gets it', async () => {
  const file = lockFile()
  fs.mkdirSync(path.dirname(file))
  fs.writeFileSync(file, 'half a fi')
  const tries = await Promise.allSettled(Array.from({ length: 20 }, () => ProcessLock.take(file)))
  expect(tries.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
})
