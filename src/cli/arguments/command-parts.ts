import type { Command } from 'commander'
import { colours } from '../output.ts'

/** Examples of use, below the help of a command. */
export const examples = (...lines: string[]): string =>
  `\n${colours.bold('Examples:')}\n${lines.map((line) => `  ${line}`).join('\n')}`

/** Adds a command about a project, which it looks for from the current folder upwards. */
export function projectCommand(parent: Command, usage: string, description: string): Command {
  return parent
    .command(usage)
    .description(description)
    .option('--project <dir>', 'folder of servo.config.ts (default: the nearest one above)')
    .option('--json', 'print JSON')
}

/** Collects the values of an option that may be repeated. */
export const several = (value: string, before: string[] = []): string[] => [...before, value]
