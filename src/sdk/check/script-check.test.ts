import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { command } from '../declare/asset.ts'
import { missingScript } from './script-check.ts'

const root = fs.mkdtempSync(path.join(os.tmpdir(), 'servo-scripts-'))
afterAll(() => fs.rmSync(root, { recursive: true }))
fs.mkdirSync(path.join(root, 'ml'))
fs.writeFileSync(path.join(root, 'ml/train.py'), '')

const missing = (run: [string, ...string[]], cwd?: string): string | undefined =>
  missingScript(command('forecast', { run, ...(cwd !== undefined && { cwd }) }), root)?.message

test.each<[string, [string, ...string[]]]>([
  ['a script', ['python3', 'ml/tain.py', '--fast']],
  ['a script behind flags', ['python3.12', '-u', '-B', 'ml/tain.py']],
  ['a program of the project', ['./ml/tain.py']],
  ['a script for uv', ['uv', 'run', 'ml/tain.py', '--day', 'x']],
  ['a script for Python that poetry runs', ['poetry', 'run', 'python', 'ml/tain.py']],
  ['a script behind variables', ['env', 'A=1', 'B=2', 'python3', 'ml/tain.py']],
])('a command that names %s that does not exist is found', (_, run) => {
  expect(missing(run)).toMatch(/^forecast runs (\.\/)?ml\/tain\.py, which does not exist$/)
})

test('a command whose folder does not exist is found', () => {
  expect(missing(['python3', 'train.py'], 'mll')).toBe('folder not found: mll, the `cwd` of forecast')
})

test.each<[string, [string, ...string[]]]>([
  ['is there', ['python3', 'ml/train.py', 'out/new.csv']],
  ['is code', ['sh', '-c', 'dbt build > log.txt']],
  ['is a module', ['python3', '-m', 'shop.train']],
  ['is a command of a program', ['dbt', 'build', 'models/new.sql']],
  ['has no file ending', ['deno', 'run', 'main.ts']],
  ['is a flag', ['node', '--version']],
  ['is the value of a flag of uv', ['uv', 'run', '--with', 'duckdb==1.4', 'ml/train.py']],
  ['is only variables', ['env', 'A=1']],
])('what %s is not missed', (_, run) => {
  expect(missing(run)).toBeUndefined()
})

test('a script is looked for in the folder that the command runs in', () => {
  expect(missing(['python3', 'train.py'], 'ml')).toBeUndefined()
  expect(missing(['python3', 'train.py'])).toContain('runs train.py')
})
