import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { sendOutgoing } from './outgoing.ts'
import { isPublicAddress } from './private-addresses.ts'

describe('an alert goes', () => {
  test('[H11] to public addresses only', () => {
    for (const address of ['1.1.1.1', '93.184.216.34', '2606:4700::1111'])
      expect([address, isPublicAddress(address)]).toEqual([address, true])
    const others = [
      '127.0.0.1',
      '10.1.2.3',
      '172.31.0.1',
      '192.168.1.1',
      '169.254.169.254',
      '100.64.0.1',
      '0.0.0.0',
      '224.0.0.1',
    ]
    const of6 = [
      '::1',
      '::',
      'fe80::1',
      'fd00::1',
      '::ffff:127.0.0.1',
      '64:ff9b::7f00:1',
      '2002:7f00:1::',
      '2001:db8::1',
      'not an address',
    ]
    for (const address of [...others, ...of6]) expect([address, isPublicAddress(address)]).toEqual([address, false])
  })

  test('[H11] not to private ones unless it is allowed, whatever form the address has, and follows no redirect', async () => {
    const asked: string[] = []
    const server = createServer((request, response) => {
      asked.push(request.url ?? '')
      response.writeHead(302, { location: '/elsewhere' }).end()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo
    const send = (url: string, allowPrivate: boolean) =>
      sendOutgoing({ url, headers: {}, body: '{}', allowPrivate, timeoutMs: 5_000 })
    for (const host of ['127.0.0.1', 'localhost', '2130706433', '0x7f.1', '[::1]', '[::ffff:127.0.0.1]'])
      expect([host, await send(`https://${host}:${port}/hook`, false)]).toEqual([
        host,
        { error: 'its address is one of a private network, which is not allowed', final: true },
      ])
    expect(await send(`http://127.0.0.1:${port}/hook`, false)).toMatchObject({ final: true })
    expect(asked).toEqual([])
    expect(await send(`http://localhost:${port}/hook?x=1`, true)).toEqual({ status: 302 })
    expect(asked).toEqual(['/hook?x=1'])
  })

  test('[H11] or says why it did not, without the address', async () => {
    const to = (url: string, timeoutMs = 10_000) =>
      sendOutgoing({ url, headers: {}, body: '{}', allowPrivate: true, timeoutMs })
    expect(await to('http://127.0.0.1:9/s3cret')).toEqual({ error: 'it refused the connection', final: false })
    expect(await to('http://name.invalid/s3cret')).toEqual({ error: 'its name could not be resolved', final: false })
    const silent = createServer(() => undefined)
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void silent.close())
    const { port } = silent.address() as AddressInfo
    expect(await to(`http://127.0.0.1:${port}/s3cret`, 50)).toEqual({ error: 'it did not answer in time', final: false })
  })
})
