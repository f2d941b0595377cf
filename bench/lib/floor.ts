import { type ChildProcess, spawn } from 'node:child_process'
import { rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { atEnd } from './ending.ts'
import { rawDisk } from './raw-disk.ts'
import { scratchFolder } from './scratch.ts'
import { median } from './stats.ts'

/** What no durable step can be faster than on this machine: a small file on the disk, a word to another process and back. */
export interface Floor {
  readonly fileMs: number
  readonly roundTripMs: number
}

const FILES = 30
const ROUND_TRIPS = 200
const BYTES = Buffer.alloc(600, '.')

/** Measures the floor anew at each call: a shared machine changes from one minute to the next. */
export async function openFloor(): Promise<() => Promise<Floor>> {
  const peer = await openEcho()
  return async () => ({ fileMs: durableFileMs(), roundTripMs: await roundTripMs(peer) })
}

function durableFileMs(): number {
  const folder = scratchFolder('floor')
  const disk = rawDisk(folder)
  const times = Array.from({ length: FILES }, () => {
    const start = performance.now()
    disk.createSync(BYTES)
    return performance.now() - start
  })
  disk.close()
  rmSync(folder, { recursive: true })
  return median(times)
}

async function roundTripMs(peer: Socket): Promise<number> {
  const times: number[] = []
  for (let i = 0; i < ROUND_TRIPS; i++) {
    const start = performance.now()
    const answer = new Promise((resolve) => peer.once('data', resolve))
    peer.write('.')
    await answer
    times.push(performance.now() - start)
  }
  return median(times)
}

const ECHO = `require('node:net').createServer((socket) => socket.setNoDelay().pipe(socket))
  .listen(0, '127.0.0.1', function () { console.log(this.address().port) })
process.stdin.resume().on('end', () => process.exit())`

/** A process of its own, which ends when its standard input does, that is, with us. */
async function openEcho(): Promise<Socket> {
  const child: ChildProcess = spawn(process.execPath, ['--eval', ECHO], { stdio: ['pipe', 'pipe', 'inherit'] })
  const port = await new Promise<number>((resolve) => child.stdout?.once('data', (text: Buffer) => resolve(Number(text))))
  const socket = connect(port, '127.0.0.1').setNoDelay()
  atEnd(() => {
    socket.destroy()
    child.kill()
  })
  await new Promise((resolve) => socket.once('connect', resolve))
  return socket
}
