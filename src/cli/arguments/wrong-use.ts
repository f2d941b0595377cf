import type { Command, CommanderError } from 'commander'
import { ServoError } from '../../lib/error.ts'
import { commandIn } from '../json/chosen-fields.ts'

/** A mistake in the arguments that the parser found, told as other mistakes are. */
export function wrongUse(program: Command, args: readonly string[], { code, message }: CommanderError): ServoError {
  const [first = '', suggestion] = message.replace(/^error: /, '').split('\n')
  const command = commandIn(program, args)
  const [, unknown] = /^unknown command '(.*)'$/s.exec(first) ?? []
  const known = unknown !== undefined && command === program ? meantCommand(program, unknown) : undefined
  const meant = known ?? suggestion?.replace(/^\((.*)\)$/, '$1')
  const { text, hint } = rewritten(code, first, command)
  // What the parser suggests is only spelled alike.
  return new ServoError('invalid', 'wrong_use', text, { hint: hint ?? meant ?? helpHint(command) })
}

/** What other tools call it. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  version: '--version',
  describe: 'assets show',
  ls: 'assets list',
  list: 'assets list',
  lineage: 'assets graph',
  materialize: 'run',
  execute: 'run',
  exec: 'run',
  build: 'run',
  start: 'dev',
  up: 'dev',
  serve: 'dev',
  server: 'dev',
  ui: 'dev',
  new: 'init',
  lint: 'check',
  validate: 'check',
  compile: 'check',
  test: 'check',
  sql: 'query',
  status: 'partitions status',
}

/** A command that other tools have, or that stands below another one here: `logs` is `servo runs logs`. */
function meantCommand(program: Command, word: string): string | undefined {
  const elsewhere = Object.hasOwn(ELSEWHERE, word) ? ELSEWHERE[word] : undefined
  if (elsewhere?.startsWith('-')) return `Run servo ${elsewhere}.`
  const below = program.commands.filter(({ commands }) => commands.some((each) => each.name() === word))
  const meant = elsewhere === undefined ? below.map((each) => `servo ${each.name()} ${word}`) : [`servo ${elsewhere}`]
  const last = meant.pop()
  return last === undefined ? undefined : `Did you mean ${meant.length === 0 ? last : `${meant.join(', ')} or ${last}`}?`
}

/** What the parser says, in the words of our other errors. */
function rewritten(code: string, message: string, command: Command): { text: string; hint?: string } {
  const quoted = [...message.matchAll(/'([^']*)'/g)].map(([, text = '']) => text)
  const [first = '', second = ''] = quoted
  const flagOf = (flags: string): string => flags.split(/[ ,]+/).find((word) => word.startsWith('--')) ?? flags
  switch (code) {
    case 'commander.help':
      return { text: 'no command given' }
    case 'commander.missingArgument':
      return { text: `missing argument <${first}>`, hint: `Usage: ${usageOf(command)}` }
    case 'commander.missingMandatoryOptionValue':
      return { text: `missing option ${flagOf(first)}`, hint: `Add ${first.replace(/^-\w, /, '')}. ${helpHint(command)}` }
    case 'commander.excessArguments':
      return { text: `unexpected argument '${unexpected(message)}'`, hint: `Usage: ${usageOf(command)}` }
    case 'commander.optionMissingArgument':
      return { text: `${flagOf(first)} needs a value`, hint: `Write ${first.replace(/^-\w, /, '')}.` }
    case 'commander.conflictingOption':
      return { text: `${flagOf(first)} and ${flagOf(second)} cannot be used together`, hint: 'Choose one of them.' }
    case 'commander.invalidArgument': {
      const [name, value] = message.startsWith('option') ? [flagOf(first), second] : [`<${second}>`, first]
      const hint = message.replace(/^.*Allowed choices are /, 'Use one of: ').replace(/\.$/, '')
      return { text: `invalid value '${value}' for ${name}`, hint }
    }
    case 'commander.unknownOption': {
      const chosen = optionOf(command, first)
      return { text: message, ...(chosen !== undefined && { hint: `Write ${chosen}.` }) }
    }
    default:
      return { text: message }
  }
}

/** A value that was written as an option, with the option that takes it: `--csv` is `--format csv`. */
function optionOf(command: Command, flag: string): string | undefined {
  const word = flag.replace(/^--/, '')
  const option = command.options.find(({ argChoices }) => argChoices?.includes(word))
  return option === undefined ? undefined : `${option.long} ${word}`
}

/** `too many arguments for 'list'. Expected 1 argument but got 2: a, b.` */
function unexpected(message: string): string {
  const [, expected = '0', all = ''] = /Expected (\d+) arguments? but got \d+: (.*)\.$/s.exec(message) ?? []
  return all.split(', ')[Number(expected)] ?? all
}

function usageOf(command: Command): string {
  return `${pathOf(command)} ${command.usage()}`
}

const pathOf = (command: Command): string =>
  command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`

const helpHint = (command: Command): string => `Run ${pathOf(command)} --help for usage.`
