import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { servo } from './support/servo.ts'

const page = fs.readFileSync(path.resolve(import.meta.dirname, '../../docs/cli.md'), 'utf8')
/** Documented once, for all commands. */
const USUAL = ['--help', '--version', '--json', '--project']

interface Help {
  /** `runs list`; empty for the command itself. */
  readonly words: string
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** What `--help` says of a command and of every command below it, found the way a user would. */
async function helpOf(words: readonly string[]): Promise<Help[]> {
  const { code, stdout, stderr } = await servo([...words, '--help'])
  const isList = /^[A-Z][^\n]*:\n(?: {2,}[^\n]*\n?)+/gm
  const lists = [...stdout.matchAll(isList)]
    .map(([text]) => text)
    .filter((text) => !/^(?:Options|Examples|JSON fields):/.test(text))
  const below = lists.flatMap((text) => [...text.matchAll(/^ {2}([a-z-]+)\b/gm)].map(([, name = '']) => name))
  const found: Help[] = [{ words: words.join(' '), code, stdout, stderr }]
  for (const name of below) found.push(...(await helpOf([...words, name])))
  return found
}

/** The part of the page about a command: its own section, or that of the commands about a folder of state. */
function sectionOf(words: string): string {
  const [first = ''] = words.split(' ')
  const sections = page.split(/^## /m)
  return (
    sections.find((text) => text.startsWith(`servo ${first}\n`)) ??
    sections.find((text) => text.startsWith('The state\n')) ??
    ''
  )
}

const commands = await helpOf([])

test('there are commands within commands', () => {
  expect(commands.map(({ words }) => words)).toEqual(
    expect.arrayContaining(['dev', 'runs logs', 'assets graph', 'partitions report', 'query', 'attach', 'cron next']),
  )
})

test.each(commands)('servo $words --help fits a terminal, and docs/cli.md has the command and every flag of it', (help) => {
  const { words, stdout } = help
  expect(help).toMatchObject({ code: 0, stderr: '' })
  expect(stdout).toMatch(/^Usage: servo/)
  expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThan(120)
  expect(stdout).not.toMatch(/ \n/)
  const section = sectionOf(words)
  // `servo runs` alone does nothing: its section is its documentation.
  expect(words === '' ? page : section).toMatch(new RegExp(`servo ${words.replace(' ', ' +')}\\b`))
  const flags = [...stdout.matchAll(/^ {2}(?:-\w, )?(--[a-z-]+)/gm)].map(([, flag = '']) => flag)
  expect(flags.filter((flag) => !USUAL.includes(flag) && !new RegExp(`${flag}(?![a-z-])`).test(section))).toEqual([])
})

test('servo help names a command as --help does, and -v prints the version', async () => {
  const [help, unknown, version] = await Promise.all([
    servo(['help', 'runs', 'logs']),
    servo(['help', 'runs', 'lgs']),
    servo(['-v']),
  ])
  expect(help).toEqual({ code: 0, stdout: commands.find(({ words }) => words === 'runs logs')?.stdout, stderr: '' })
  expect(unknown).toEqual({ code: 2, stdout: '', stderr: "error: unknown command 'lgs'\nhint: Did you mean logs?\n" })
  expect(version).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\S*\n$/), stderr: '' })
})
