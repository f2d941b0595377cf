import { describe, expect, test } from 'vitest'
import { LONGEST_SECRET, Redactor, redactedEnd, secretsOf } from './redactor.ts'

const redactor = (environment: Record<string, string>, declared: string[] = []): Redactor => {
  const made = new Redactor()
  made.learn(secretsOf(environment, declared))
  return made
}

describe('secrets', () => {
  test('are variables that are declared or look so by name, if they are long enough, and passwords in addresses', () => {
    const environment = {
      SHOP_API_TOKEN: 'abcdefgh',
      sshkey: 'ijklmnop',
      DB_PASSWORD: 'short',
      HOME: '/home/shop-data',
      SHOP_DSN: 'dsn-1',
      DATABASE_URL: 'postgres://shop:opensesame@db/shop',
    }
    expect([...secretsOf(environment, ['SHOP_DSN', 'NOT_SET'])]).toEqual([
      ['SHOP_DSN', 'dsn-1'],
      ['SHOP_API_TOKEN', 'abcdefgh'],
      ['sshkey', 'ijklmnop'],
      ['DATABASE_URL', 'opensesame'],
    ])
  })

  test('are found as they are, in JSON, in an address, in base64 at any place, and line by line', () => {
    const key = `-----BEGIN KEY-----\n${'MIIEvQIBADANBgkqhkiG9w0B'}\n${'AQEFAASCBKcwggSjAgEAAoIB'}\n  dG9vaw==\n-----END KEY-----\n`
    const secret = 'pass"word/with spaces+ü'
    const { text } = redactor({ A_SECRET: secret, PRIVATE_KEY: key })
    const forms = [
      secret,
      JSON.stringify({ secret }),
      JSON.stringify({ body: JSON.stringify({ secret }) }),
      `https://x.example/?q=${encodeURIComponent(secret)}&r=${new URLSearchParams({ secret })}`,
      ...['', 'u', 'us', 'user:'].flatMap((before) =>
        (['base64', 'base64url'] as const).map((how) => Buffer.from(`${before}${secret}!`).toString(how)),
      ),
    ]
    for (const form of forms) expect(text(`[${form}]`), form).toContain('[redacted A_SECRET]')
    for (const form of forms) expect(text(form)).not.toMatch(/word|cGFzcyJ3b3Jk/)
    expect(text(`line 2: ${key.split('\n')[2]}`)).toBe('line 2: [redacted PRIVATE_KEY]')
    expect(text('-----BEGIN KEY----- then dG9vaw==')).toBe('-----BEGIN KEY----- then [redacted PRIVATE_KEY]')
    expect(text(JSON.stringify(key))).toBe('"[redacted PRIVATE_KEY]\\n"')
    const oneLine = redactor({ OTHER_KEY: '-----BEGIN KEY-----\\nMIIEvQIBADAN/+Bg==\\n-----END KEY-----' })
    expect(oneLine.text('line MIIEvQIBADAN/+Bg==')).toBe('line [redacted OTHER_KEY]')
    expect(oneLine.text(encodeURIComponent('MIIEvQIBADAN/+Bg=='))).toBe('[redacted OTHER_KEY]')
    expect(oneLine.text(Buffer.from('MIIEvQIBADAN/+Bg==').toString('base64'))).toContain('[redacted OTHER_KEY]')
  })

  test('in addresses are found encoded and decoded, also if the address itself is a secret', () => {
    const address = 'postgres://bob:canaryPw%40rd99@db/x'
    const password = decodeURIComponent(new URL(address).password)
    for (const environment of [{ DATABASE_URL: address }, { SECRET_URL: address }]) {
      const { text } = redactor(environment)
      for (const form of [password, 'canaryPw%40rd99', Buffer.from(`bob:${password}`).toString('base64'), address])
        expect(text(`[${form}]`), form).toMatch(/\[redacted (DATABASE|SECRET)_URL]/)
      expect(text(password)).not.toContain('rd99')
    }
    expect(redactor({ URL: 'amqp://bob:p@ssw0rd-9@mq' }).text('p@ssw0rd-9')).toBe('[redacted URL]')
    expect(redactor({ A_TOKEN: 'broken%zz1' }).text('broken%zz1')).toBe('[redacted A_TOKEN]')
  })

  test('that contain one another are taken out whole, and those that are gone by now too', () => {
    const made = redactor({ SHORT_KEY: 'abcdefgh', LONG_KEY: 'abcdefghijkl' })
    made.learn(secretsOf({}))
    expect(made.text('abcdefghijkl abcdefgh')).toBe('[redacted LONG_KEY] [redacted SHORT_KEY]')
  })

  test('are taken out of every text of a JSON value', () => {
    const value = { abcdefgh: ['x abcdefgh', { n: 1, none: null, no: true }] }
    expect(redactor({ A_KEY: 'abcdefgh' }).json(value)).toEqual({
      '[redacted A_KEY]': ['x [redacted A_KEY]', { n: 1, none: null, no: true }],
    })
  })

  test('are not left in half at the beginning of text of which only the end is kept', () => {
    const { text } = redactor({ A_KEY: 'abcdefgh'.repeat(4) })
    const secret = 'abcdefgh'.repeat(4)
    for (let cut = 0; cut <= secret.length; cut++) {
      const kept = (secret + 'x'.repeat(90 + LONGEST_SECRET)).slice(cut).slice(0, 100 + LONGEST_SECRET)
      expect(redactedEnd(kept, 100, text)).not.toContain('abcd')
    }
    expect(redactedEnd(`see ${secret}`, 100, text)).toBe('see [redacted A_KEY]')
  })
})
