import type { Command } from 'commander'
import { examples, projectCommand } from './command-parts.ts'

/** The commands that a project begins with. */
export function beginCommands(program: Command): void {
  program.commandsGroup('Begin:')

  program
    .command('init [folder]')
    .description('make a project that runs at once, or add what a package lacks')
    .option('--name <name>', 'name of the project (default: that of the folder)')
    .option('--assets <folder>', 'folder of its assets (default: assets, or servo if there is one)')
    .option('--install', 'install its packages (default)')
    .option('--no-install', 'leave that to you')
    .option('--yes', 'ask nothing: what no flag says is the default')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `\nAsks on a terminal for what no flag says; elsewhere the defaults count. No file is overwritten.\n${examples(
        'servo init shop --yes',
        'servo init . --name shop --no-install',
      )}`,
    )
    .action(async (folder: string | undefined, flags) =>
      (await import('../commands/init.ts')).initCommand(folder, flags, new Date()),
    )

  projectCommand(program, 'check', 'say what is wrong with the project, without running it')
    .addHelpText('after', '\nExits with 0 if nothing is wrong, and with 1 if something is. Nothing is written.')
    .action(async (flags) => (await import('../commands/check.ts')).checkCommand(flags, new Date()))

  projectCommand(program, 'doctor', 'say what stands in the way of Servo here: Node, project, state, clock, disk, leader')
    .addHelpText('after', '\nExits with 0 if there is no problem, and with 1 if there is one. Nothing is written.')
    .action(async (flags) => (await import('../commands/doctor.ts')).doctorCommand(flags, new Date()))
}
