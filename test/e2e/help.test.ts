import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { servo } from './support/servo.ts'

const page = fs.readFileSync(path.resolve(import.meta.dirname, '../../docs/cli.md'), 'utf8')
/** Every command has these. */
const USUAL = ['--help', '--version', '--json', '--project']

const commands = [
  '',
  'dev',
  'run',
  'runs',
  'runs list',
  'runs show',
  'runs cancel',
  'runs rerun',
  'runs logs',
  'assets',
  'assets list',
  'assets show',
  'assets graph',
  'partitions',
  'partitions add',
  'partitions remove',
  'partitions keys',
  'partitions report',
  'partitions wipe',
  'query',
  'verify',
]

test.each(commands)('servo %s --help fits a terminal, and docs/cli.md knows every flag of it', async (words) => {
  const { code, stdout, stderr } = await servo([...words.split(' ').filter(Boolean), '--help'])
  expect(stdout).toMatch(/^Usage: servo/)
  expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThan(120)
  expect(stdout).not.toMatch(/ \n/)
  const flags = [...stdout.matchAll(/^ {2}(?:-\w, )?(--[a-z]+)/gm)].map(([, flag]) => flag as string)
  expect(flags.filter((flag) => !USUAL.includes(flag) && !page.includes(flag))).toEqual([])
  expect(stderr).toBe('')
  expect(code).toBe(0)
})

test('docs/cli.md names every command', async () => {
  const { stdout } = await servo(['--help'])
  const names = [...stdout.matchAll(/^ {2}([a-z]+)\b.* {2}/gm)].map(([, name]) => name as string)
  expect(names).toEqual(expect.arrayContaining(['dev', 'run', 'runs', 'query']))
  for (const name of names) expect(page).toMatch(new RegExp(`servo ${name}\\b`))
})
