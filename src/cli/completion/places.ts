import type { Argument, Command, Option } from 'commander'
import { jsonFieldsOf } from '../json/chosen-fields.ts'

/** What a shell needs to know of the command line: for each command what may come next. */
export interface CommandPlace {
  /** The words that lead there, each with a space before it: ` runs show`. An alias is a place of its own. */
  readonly where: string
  readonly commands: readonly Word[]
  readonly flags: readonly Flag[]
  /** What its arguments are. */
  readonly argument: Value
}

interface Word {
  readonly name: string
  readonly description: string
}

interface Flag extends Word {
  readonly short?: string
  /** Undefined for a flag that takes no value. */
  readonly value?: Value
}

/**
 * What stands in a place: something that the project knows, a folder, one of some words, several of them with commas between, or something
 * that only the user knows.
 */
export type Value = Asked | 'folder' | 'anything' | `one-of:${string}` | `some-of:${string}`

/** Asked from the project: any number of assets, one asset, one asset and then its partition, a partition, a run; and what runs by itself. */
export const ASKED = [
  ...(['assets', 'asset', 'asset-partition', 'partition', 'run'] as const),
  ...(['schedules', 'schedule', 'sensors', 'sensor', 'backfill'] as const),
] as const
export type Asked = (typeof ASKED)[number]

export function placesOf(command: Command, where = ''): CommandPlace[] {
  const help = command.createHelp()
  const below = help.visibleCommands(command)
  const own: CommandPlace = {
    where,
    commands: below.map((each) => ({ name: each.name(), description: each.description() })),
    flags: help.visibleOptions(command).map((option) => flagOf(option, command)),
    argument: argumentOf(command),
  }
  const names = (each: Command): string[] => [each.name(), ...each.aliases()]
  return [own, ...below.flatMap((each) => names(each).flatMap((name) => placesOf(each, `${where} ${name}`)))]
}

function flagOf(option: Option, command: Command): Flag {
  const { short, long, description, required, optional } = option
  return {
    name: long ?? short ?? '',
    description,
    ...(long && short && { short }),
    ...((required || optional) && { value: takenBy(option, command) }),
  }
}

function takenBy({ long, flags, argChoices }: Option, command: Command): Value {
  if (argChoices !== undefined) return `one-of:${argChoices.join(',')}`
  if (long === '--partition') return 'partition'
  if (long === '--json') return `some-of:${jsonFieldsOf(command).join(',')}`
  const name = /[<[]([^>\].]+)/.exec(flags)?.[1]
  return name === 'selection' || name === 'asset' ? 'assets' : isFolder(name) ? 'folder' : 'anything'
}

function argumentOf(command: Command): Value {
  const [first, second]: readonly Argument[] = command.registeredArguments
  if (first === undefined) return 'anything'
  if (first.argChoices !== undefined) return `one-of:${first.argChoices.join(',')}`
  const name = first.name()
  if (name === 'run' || name === 'backfill') return name
  // What is created gets a new name.
  if (name === 'schedule' || name === 'sensor')
    return command.name() === 'create' ? 'anything' : first.variadic ? `${name}s` : name
  if (name !== 'asset' && name !== 'selection') return isFolder(name) ? 'folder' : 'anything'
  if (second?.name() === 'partition') return 'asset-partition'
  return first.variadic ? 'assets' : 'asset'
}

const isFolder = (name: string | undefined): boolean => name === 'dir' || name === 'folder'
