import type { Command } from 'commander'
import { ServoError } from '../../lib/error.ts'
import { nearest } from '../../lib/nearest.ts'
import { DRY_RUN, JSON_FIELDS, PRINTS_ROWS } from './fields.ts'

/** `runs list`, whichever alias was typed. */
function wordsOf(command: Command): string {
  const above = command.parent
  return above === null ? '' : [wordsOf(above), command.name()].filter(Boolean).join(' ')
}

export const jsonFieldsOf = (command: Command): readonly string[] => JSON_FIELDS[wordsOf(command)] ?? []

/** `state`, or several with commas between them. */
const LIST = /^[A-Za-z]\w*(?:,\w+)*,?$/

/**
 * Says of each `--json` whether the word behind it names fields: an argument may stand there as well. A list with commas does, and so do a field
 * of the command and any word behind all arguments that the command needs. `--json=state` always does.
 */
export function joinFields(program: Command, args: readonly string[]): string[] {
  const end = args.includes('--') ? args.indexOf('--') : args.length
  const command = commandIn(program, args)
  if (!command.options.some(({ long }) => long === '--json')) return [...args]
  const isFields = (word: string | undefined, at: number): word is string =>
    word !== undefined &&
    LIST.test(word) &&
    (word.includes(',') || jsonFieldsOf(command).includes(word) || hasArguments(command, args.slice(0, at)))
  const joined: string[] = []
  for (let i = 0; i < end; i++) {
    const word = args[i] ?? ''
    const next = i + 1 < end ? args[i + 1] : undefined
    if (word !== '--json') joined.push(word)
    else if (isFields(next, i)) {
      joined.push(`--json=${next}`)
      i++
    } else joined.push('--json=')
  }
  return [...joined, ...args.slice(end)]
}

/** True if these words have every argument that the command needs, and it cannot take any number of them. */
function hasArguments(command: Command, words: readonly string[]): boolean {
  const { registeredArguments: all } = command
  if (all.length === 0) return true
  if (all.some(({ variadic }) => variadic)) return false
  const needed = Math.max(1, all.filter(({ required }) => required).length)
  const given = words.filter((word) => !word.startsWith('-')).length - wordsOf(command).split(' ').length
  return given >= needed
}

/** The command that the first words name. */
export function commandIn(program: Command, args: readonly string[]): Command {
  let command = program
  for (const word of args) {
    const below = command.commands.find((each) => each.name() === word || each.aliases().includes(word))
    if (below === undefined) break
    command = below
  }
  return command
}

/** The fields that a flag chooses; undefined for all of them. */
export function chosenFields(command: Command, given: unknown): readonly string[] | undefined {
  if (typeof given !== 'string' || given === '') return undefined
  const names = given.split(',').filter(Boolean)
  const words = wordsOf(command)
  if (PRINTS_ROWS.has(words)) return names
  const known = JSON_FIELDS[words]
  if (known === undefined)
    throw new ServoError('invalid', 'bad_flag', `servo ${words} --json prints whole events, so no fields can be chosen`, {
      hint: `Use servo ${words} --json alone, and choose with another program (jq).`,
    })
  const isDry = words !== 'run' || command.opts()['dryRun'] === true
  checkFields(
    names,
    known.filter((name) => isDry || !DRY_RUN.includes(name)),
  )
  return names
}

/** Refuses a field that is none of these, and names those there are. */
export function checkFields(names: readonly string[], known: readonly string[]): void {
  const unknown = names.find((name) => !known.includes(name))
  if (unknown === undefined) return
  const near = nearest(unknown, known)
  throw new ServoError('invalid', 'unknown_field', `unknown field '${unknown}'`, {
    hint: `${near === undefined ? '' : `Did you mean ${near}? `}Fields: ${known.join(', ')}`,
  })
}

/** These fields of each entry of a list or page, or of the one thing that there is. */
export function pickFields(value: unknown, names: readonly string[]): unknown {
  if (Array.isArray(value)) return value.map((entry) => pickFields(entry, names))
  if (typeof value !== 'object' || value === null) return value
  if ('next_cursor' in value)
    return Object.fromEntries(
      Object.entries(value).map(([name, part]) => [name, Array.isArray(part) ? pickFields(part, names) : part]),
    )
  const members = new Map(Object.entries(value))
  return Object.fromEntries(names.map((name) => [name, members.get(name) ?? null]))
}
