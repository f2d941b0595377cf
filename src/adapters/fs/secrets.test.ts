import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { inspect } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { secretsConformance } from '../../testing/conformance/secrets.ts'
import { fsSecrets } from './secrets.ts'

secretsConformance('secrets in a file', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'servo-secrets-'))
  return {
    join: () => fsSecrets(join(dir, 'local', 'secrets.json')),
    close: async () => rmSync(dir, { recursive: true }),
  }
})

describe('secrets in a file', () => {
  const secrets = {
    run_ids: { id: 'local-1', value: 'r'.repeat(43) },
    api_token: 'a'.repeat(43),
    task_tokens: { id: 'local-1', value: 't'.repeat(43) },
  }

  function place(): string {
    const dir = mkdtempSync(join(tmpdir(), 'servo-secrets-'))
    onTestFinished(() => rmSync(dir, { recursive: true }))
    return join(dir, 'local', 'secrets.json')
  }

  test('can be read by their owner alone, and leave nothing else behind', async () => {
    const file = place()
    await fsSecrets(file).create(secrets)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readdirSync(dirname(file))).toEqual(['secrets.json'])
  })

  test('that cannot be read are an error at once, and nothing is written', async () => {
    const file = place()
    mkdirSync(file, { recursive: true })
    await expect(fsSecrets(file).read()).rejects.toMatchObject({ kind: 'unavailable', code: 'secrets_unreadable' })
    rmSync(file, { recursive: true })
    execFileSync('mkfifo', [file])
    await expect(fsSecrets(file).read()).rejects.toMatchObject({ kind: 'unavailable', code: 'secrets_unreadable' })
    rmSync(dirname(file), { recursive: true })
    writeFileSync(dirname(file), 'a file where the folder should be')
    await expect(fsSecrets(file).read()).rejects.toMatchObject({ code: 'secrets_unreadable' })
    await expect(fsSecrets(file).create(secrets)).rejects.toMatchObject({ name: 'ServoError' })
  })

  test('are read where a symlink leads, and are an error when it leads nowhere', async () => {
    const [file, elsewhere] = [place(), place()]
    mkdirSync(dirname(file))
    symlinkSync(elsewhere, file)
    await expect(fsSecrets(file).read()).rejects.toMatchObject({ kind: 'unavailable', code: 'secrets_unreadable' })
    await fsSecrets(elsewhere).create(secrets)
    expect(await fsSecrets(file).read()).toEqual(secrets)
  })

  test('that are half a file, or something else, are an error that does not repeat them', async () => {
    const file = place()
    await fsSecrets(file).create(secrets)
    const whole = readFileSync(file, 'utf8')
    for (const text of ['', whole.slice(0, 90), '{}', whole.replace('local-1', '../local')]) {
      writeFileSync(file, text)
      const error = await fsSecrets(file)
        .read()
        .catch((thrown: unknown) => thrown)
      expect(error).toMatchObject({ kind: 'corrupt', code: 'bad_secrets' })
      expect(inspect(error)).not.toContain('rrrr')
    }
  })
})
