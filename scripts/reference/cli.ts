import { stripVTControlCharacters } from 'node:util'
import type { Argument, Command, Option } from 'commander'
import { commands as servoCommands } from '../../src/cli/main.ts'
import { code, page, table } from './markdown.ts'

/** Explained once, above all commands. */
const usual = ['--project', '--json']

export function cliPage(): string {
  const groups = Map.groupBy(visible(servoCommands()), (command) => command.helpGroup())
  const contents = [...groups].map(
    ([group, commands]) =>
      `- ${group} ${commands.map((command) => `[${command.name()}](#servo-${command.name()})`).join(', ')}`,
  )
  return page(
    '# Commands',
    '[The command line](../cli.md) explains what the commands do and shows what they print. This page lists every command with its arguments and flags, as `--help` does.',
    contents.join('\n'),
    'Commands about a project find it from the current folder upwards; `--project <dir>` names another. `--json` prints JSON for programs. `-h, --help` prints the help of a command. `servo --version` prints the version.',
    ...[...groups.values()].flat().flatMap((command) => section(command, 'servo', 2)),
  )
}

const visible = (command: Command): readonly Command[] =>
  command
    .createHelp()
    .visibleCommands(command)
    .filter((each) => each.name() !== 'help')

function section(command: Command, parent: string, level: number): string[] {
  const name = `${parent} ${command.name()}`
  const below = visible(command)
  const heading = `${'#'.repeat(level)} ${name}`
  if (below.length > 0)
    return [heading, sentence(command.description()), ...below.flatMap((each) => section(each, name, level + 1))]
  const options = command.options.filter((option) => !option.hidden)
  const own = options.filter((option) => !usual.includes(option.long ?? ''))
  const also = options.filter((option) => usual.includes(option.long ?? '')).map(({ flags }) => code(flags))
  const words = command.registeredArguments.map((argument) => ` ${argumentText(argument)}`).join('')
  return [
    heading,
    `${code(name + words)}: ${sentence(command.description())}${also.length > 0 ? ` Takes ${also.join(' and ')}.` : ''}`,
    ...(own.length > 0 ? [table(['flag', '', 'default'], own.map(optionCells))] : []),
    ...notes(command),
  ]
}

function argumentText(argument: Argument): string {
  const text = `${argument.name()}${argument.variadic ? '...' : ''}`
  return argument.required ? `<${text}>` : `[${text}]`
}

function optionCells({ flags, description, defaultValue, negate }: Option): string[] {
  const [, text = description, said] = /^(.*?)(?: \(default: (.*)\))?$/s.exec(description) ?? []
  const [plain, isDefault] = text.endsWith(' (default)') ? [text.slice(0, -' (default)'.length), true] : [text, false]
  const value = said ?? (negate || defaultValue === undefined ? '' : code(String(defaultValue)))
  return [code(flags), sentence(plain), isDefault ? 'yes' : value]
}

/** `make a project` → `Make a project.`; a name in code keeps its case. */
function sentence(text: string): string {
  const begun = text.charAt(0).toUpperCase() + text.slice(1)
  return /[.)]$/.test(begun) ? begun : `${begun}.`
}

/** What `--help` prints below the flags: paragraphs, and examples. */
function notes(command: Command): string[] {
  let help = ''
  command.configureOutput({
    writeOut: (text) => {
      help += text
    },
  })
  command.outputHelp()
  const after = stripVTControlCharacters(help.slice(command.helpInformation().length))
  const [paragraphs = '', examples] = after.split(/^Examples:$/m)
  const fields = /^JSON fields:\n(?: {2}.*\n?)+/m.exec(paragraphs)?.[0] ?? ''
  const joined = (text: string): string => text.trim().replaceAll(/\s*\n\s*/g, ' ')
  return [
    ...[joined(paragraphs.replace(fields, '')), joined(fields)].filter((text) => text !== ''),
    ...(examples === undefined ? [] : [`\`\`\`text\n${examples.replaceAll(/^ {2}/gm, '').trim()}\n\`\`\``]),
  ]
}
