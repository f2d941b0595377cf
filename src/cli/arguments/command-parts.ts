import { type Command, Option } from 'commander'
import { badFlag, choiceOf } from '../flags.ts'
import { jsonFieldsOf } from '../json/chosen-fields.ts'
import { colours } from '../output.ts'

/** Examples of use, below the help of a command. */
export const examples = (...lines: string[]): string =>
  `\n${colours.bold('Examples:')}\n${lines.map((line) => `  ${line}`).join('\n')}`

/** Adds a command about a project, which it looks for from the current folder upwards. */
export function projectCommand(parent: Command, usage: string, description: string): Command {
  return printsJson(parent.command(usage).description(description)).option(
    '--project <dir>',
    'folder of servo.config.ts (default: the nearest one, from the current folder upwards)',
  )
}

/** Adds a command that asks the server of a project, or another server that it is given. */
export function serverCommand(parent: Command, usage: string, description: string): Command {
  return projectCommand(parent, usage, description)
    .addOption(new Option('--url <url>', 'address of a server to ask instead (default: SERVO_URL)').conflicts('project'))
    .option('--token <token>', 'token for that server (default: SERVO_TOKEN)')
    .hook('preAction', (_, command) => {
      const { project, url, token } = command.opts()
      // A project that is named on the command line counts more than a server that is named in the environment.
      const server = url ?? (project === undefined ? process.env['SERVO_URL'] || undefined : undefined)
      if (server === undefined) return
      command.setOptionValue('url', server)
      command.setOptionValue('token', token ?? process.env['SERVO_TOKEN'])
    })
}

/** Lets a command print JSON, all of it or chosen fields, which its help lists. */
export const printsJson = (command: Command): Command =>
  command
    .option('--json [fields]', 'print JSON; with fields, separated by commas, only these')
    .addHelpText('after', () => fieldsHelp(jsonFieldsOf(command)))

/** Narrower than most terminals. */
const HELP_WIDTH = 90

function fieldsHelp(fields: readonly string[]): string {
  if (fields.length === 0) return ''
  const lines = ['']
  for (const [i, field] of fields.entries()) {
    const word = i < fields.length - 1 ? `${field},` : field
    const last = lines.at(-1) ?? ''
    if (last.length + word.length >= HELP_WIDTH) lines.push(word)
    else lines[lines.length - 1] = last === '' ? word : `${last} ${word}`
  }
  return `\n${colours.bold('JSON fields:')}\n${lines.map((line) => `  ${line}`).join('\n')}`
}

/** Collects the values of an option that may be repeated. */
export const several = (value: string, before: string[] = []): string[] => [...before, value]

/** An option with one of these values, in lower or upper case. Help and completion list them. */
export function oneOfOption(flags: string, description: string, values: readonly string[]): Option {
  const [flag = ''] = flags.split(' ')
  return new Option(flags, description).choices(values).argParser((text: string) => choiceOf(flag, text, values))
}

export const pagedBy = (command: Command, limit = 50): Command =>
  command
    .option('--limit <number>', `how many to list (default: ${limit})`)
    .option('--cursor <cursor>', 'continue after a page; each page prints the cursor of the next')

/** Options of lists that have a time. */
export const between = (command: Command, what: string): Command =>
  command
    .option('--since <moment>', `only ${what} at or after this time: 2025-01-15 or 2025-01-15T10:00`)
    .option('--until <moment>', `only ${what} before this time`)

/** The option that makes a request repeatable. */
export const keyedBy = (command: Command, same = 'request'): Command =>
  command.option('--key <key>', `name of the request; a request repeated under the same key is the same ${same}`, (key) => {
    if (key.trim() === '') throw badFlag('--key is empty', 'Give the request a name, or leave --key out.')
    return key
  })
