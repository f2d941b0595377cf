import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { secretsConformance } from '../../testing/conformance/secrets.ts'
import { fsSecrets } from './secrets.ts'

function newFile(): string {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'servo-secrets-'))
  onTestFinished(() => fs.rmSync(dir, { recursive: true, force: true }))
  return path.join(dir, 'local', 'secrets.json')
}

const some = {
  run_ids: { id: 'local-1', value: 'run ids, long enough' },
  api_token: 'a token, long enough',
  task_tokens: { id: 'local-1', value: 'task tokens, long enough' },
}

secretsConformance('secrets in a file', async () => {
  const file = newFile()
  return { open: () => fsSecrets(file) }
})

test('the file is for its owner alone, and nothing else is left in its folder', async () => {
  const file = newFile()
  await fsSecrets(file).create(some)
  expect(fs.statSync(file).mode & 0o777).toBe(0o600)
  expect(fs.readdirSync(path.dirname(file))).toEqual(['secrets.json'])
})

test('what is no file, and what is half a file, is refused at once and stays as it is', async () => {
  const file = newFile()
  fs.mkdirSync(file, { recursive: true })
  await expect(fsSecrets(file).read()).rejects.toMatchObject({ kind: 'unavailable', code: 'secrets_unreadable' })
  await expect(fsSecrets(file).create(some)).rejects.toMatchObject({ code: 'secrets_unreadable' })
  fs.rmdirSync(file)
  fs.writeFileSync(file, JSON.stringify(some).slice(0, 60))
  await expect(fsSecrets(file).read()).rejects.toMatchObject({ kind: 'corrupt', code: 'bad_secrets' })
  await expect(fsSecrets(file).create(some)).rejects.toMatchObject({ code: 'bad_secrets' })
  expect(fs.readFileSync(file, 'utf8')).toHaveLength(60)
})
