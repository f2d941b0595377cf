import type { Command } from 'commander'
import { bashScript } from './bash.ts'
import { fishScript } from './fish.ts'
import { placesOf } from './places.ts'
import { zshScript } from './zsh.ts'

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const

/** Prints a script that completes every command of the program. */
export function printScript(shell: keyof typeof SCRIPTS, program: Command): void {
  process.stdout.write(SCRIPTS[shell](placesOf(program)))
}
