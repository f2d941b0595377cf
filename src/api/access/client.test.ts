import { BlockList } from 'node:net'
import { describe, expect, test } from 'vitest'
import { readClient } from './client.ts'
import { refuseStrangers } from './strangers.ts'

const proxies = new BlockList()
proxies.addSubnet('10.0.0.0', 8, 'ipv4')
proxies.addSubnet('fd00::', 8, 'ipv6')

const forwarded = (more: Record<string, string> = {}): Headers =>
  new Headers({
    host: '10.0.0.5:4400',
    'x-forwarded-for': '198.51.100.1',
    'x-forwarded-proto': 'https',
    'x-forwarded-host': 'servo.example',
    ...more,
  })

describe('[U11] where a request comes from', () => {
  test('is said by a trusted proxy', () => {
    for (const peer of ['10.1.2.3', '::ffff:10.1.2.3', 'fd00::7'])
      expect(readClient(forwarded(), peer, proxies)).toEqual({
        address: '198.51.100.1',
        protocol: 'https',
        host: 'servo.example',
      })
  })

  test('is said by nobody else', () => {
    const own = { address: '203.0.113.9', protocol: 'http', host: '10.0.0.5:4400' }
    expect(readClient(forwarded(), '203.0.113.9', proxies)).toEqual(own)
    expect(readClient(forwarded(), '203.0.113.9', undefined)).toEqual(own)
  })

  test.each([
    ['of several, the last that is no proxy of ours', '6.6.6.6, 198.51.100.1, 10.0.0.7', '198.51.100.1'],
    ['of proxies alone, the first of them', '10.0.0.8, 10.0.0.7', '10.0.0.8'],
    ['of what is no address, the proxy that says it', 'unknown', '10.1.2.3'],
    ['of an invented one before a real one, the real one', '<script>, 198.51.100.1', '198.51.100.1'],
    ['of none, the proxy', '', '10.1.2.3'],
  ])('%s counts', (_, given, address) => {
    expect(readClient(forwarded({ 'x-forwarded-for': given }), '10.1.2.3', proxies).address).toBe(address)
  })
})

describe('[U11] the names of a server', () => {
  const own = { hosts: ['127.0.0.1', 'localhost'], publicUrl: new URL('https://servo.example'), byAddress: true }
  const attempt = (host: string, headers: Record<string, string> = {}, names: Parameters<typeof refuseStrangers>[2] = own) => {
    try {
      refuseStrangers(new Headers(headers), { host, protocol: 'http' }, names)
      return 'let in'
    } catch {
      return 'refused'
    }
  }

  test('are its public one, loopback and, if other machines reach it, its addresses', () => {
    for (const host of ['servo.example', 'servo.example:8443', 'localhost:4400', '10.0.0.5:4400', '[2001:db8::1]:4400'])
      expect([host, attempt(host)]).toEqual([host, 'let in'])
    for (const host of ['evil.example', 'servo.example.evil.example', 'xservo.example', '', '10.0.0.5.evil.example'])
      expect([host, attempt(host)]).toEqual([host, 'refused'])
    expect(attempt('10.0.0.5:4400', {}, { hosts: ['localhost'] })).toBe('refused')
  })

  test('decide which pages may call it: its own, by the name they were found by', () => {
    expect(attempt('10.0.0.5:4400', { origin: 'http://10.0.0.5:4400' })).toBe('let in')
    expect(attempt('servo.example', { origin: 'https://servo.example' })).toBe('let in')
    // A proxy may call it by another name than its users.
    expect(attempt('127.0.0.1:4400', { origin: 'https://servo.example' })).toBe('let in')
    for (const origin of ['http://10.0.0.5:3000', 'http://10.0.0.6:4400', 'https://evil.example', 'null'])
      expect([origin, attempt('10.0.0.5:4400', { origin })]).toEqual([origin, 'refused'])
  })
})
