import fs from 'node:fs'
import path from 'node:path'
import type { Command } from 'commander'
import { expect, test } from 'vitest'
import { commands as servoCommands } from '../../src/cli/main.ts'
import { servo } from './support/servo.ts'

const page = fs.readFileSync(path.resolve(import.meta.dirname, '../../docs/cli.md'), 'utf8')
/** Documented once, for all commands. */
const USUAL = ['--help', '--version', '--json', '--project', '--url', '--token']

interface Help {
  /** `runs list`; empty for the command itself. */
  readonly words: string
  readonly stdout: string
}

/** What `--help` prints of a command and of every command below it. In this process: there are about seventy. */
function helpOf(command: Command, words: readonly string[]): Help[] {
  let stdout = ''
  command.configureOutput({
    writeOut: (text) => {
      stdout += text
    },
    // As where there is no terminal.
    getOutHelpWidth: () => 80,
  })
  command.outputHelp()
  const below = command.createHelp().visibleCommands(command)
  return [{ words: words.join(' '), stdout }, ...below.flatMap((each) => helpOf(each, [...words, each.name()]))]
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

const commands = helpOf(servoCommands(), [])

test('there are commands within commands', () => {
  expect(commands.map(({ words }) => words)).toEqual(
    expect.arrayContaining(['dev', 'runs logs', 'assets graph', 'partitions report', 'query', 'attach', 'cron next']),
  )
})

test.each(commands)('servo $words --help fits a terminal, and docs/cli.md has the command and every flag of it', (help) => {
  const { words, stdout } = help
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
  const [all, flag, help, unknown, version] = await Promise.all([
    servo(['--help']),
    servo(['runs', 'logs', '--help']),
    servo(['help', 'runs', 'logs']),
    servo(['help', 'runs', 'lgs']),
    // As with other programs, what stands beside a flag that asks for the version or for help changes nothing.
    servo(['-v', 'extra']),
  ])
  expect(all).toEqual({ code: 0, stdout: commands[0]?.stdout, stderr: '' })
  expect(flag).toEqual({ code: 0, stdout: commands.find(({ words }) => words === 'runs logs')?.stdout, stderr: '' })
  expect(help).toEqual(flag)
  expect(unknown).toEqual({ code: 2, stdout: '', stderr: "error: unknown command 'lgs'\nhint: Did you mean logs?\n" })
  expect(version).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\S*\n$/), stderr: '' })
})
