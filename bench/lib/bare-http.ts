import { type ChildProcess, spawn } from 'node:child_process'
import { atEnd } from './ending.ts'

/** A server that does nothing but answer every request with the same bytes. It ends with its standard input, that is, with us. */
const SERVER = `const body = Buffer.from(process.argv[1], 'base64')
const headers = { 'content-type': 'application/json', 'content-length': body.length }
require('node:http').createServer((request, response) => { response.writeHead(200, headers); response.end(body) })
  .listen(0, '127.0.0.1', function () { console.log(this.address().port) })
process.stdin.resume().on('end', () => process.exit())`

export async function bareServer(body: string): Promise<{ port: number; pid: number }> {
  const child: ChildProcess = spawn(process.execPath, ['-e', SERVER, Buffer.from(body).toString('base64')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  atEnd(async () => void child.kill())
  const port = await new Promise<number>((resolve) => child.stdout?.once('data', (text) => resolve(Number(text))))
  return { port, pid: child.pid as number }
}
