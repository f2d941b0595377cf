import type { Command } from 'commander'
import { badFlag } from '../flags.ts'
import { examples, printsJson, projectCommand } from './command-parts.ts'

/** The commands that a project begins with. */
export function beginCommands(program: Command): void {
  program.commandsGroup('Begin:')

  const installing = new Set<string>()
  printsJson(program.command('init [folder]').description('create a project that runs, or add what a package lacks'))
    .option('--name <name>', 'name of the project (default: the name of the folder)')
    .option('--assets <folder>', 'folder for assets (default: assets, or servo if there is an assets folder)')
    .option('--install', 'install the packages (default)')
    .option('--no-install', 'do not install the packages')
    .on('option:install', () => installing.add('--install'))
    .on('option:no-install', () => installing.add('--no-install'))
    .option('--yes', 'ask nothing, use the defaults')
    .addHelpText(
      'after',
      `\nAsks on a terminal for everything that no flag says. Overwrites no file.\n${examples(
        'servo init shop --yes',
        'servo init . --name shop --no-install',
      )}`,
    )
    .action(async (folder: string | undefined, flags) => {
      // The parser takes them for one option, whose last value counts.
      if (installing.size > 1) throw badFlag('--install and --no-install cannot be used together', 'Choose one of them.')
      await (await import('../commands/init.ts')).initCommand(folder, flags, new Date())
    })

  projectCommand(program, 'check', 'find mistakes in the project without running it')
    .addHelpText('after', '\nExits with 0 if it finds none, with 1 if it finds any. Writes nothing.')
    .action(async (flags) => (await import('../commands/check.ts')).checkCommand(flags, new Date()))

  projectCommand(program, 'doctor', 'find out what keeps Servo from working here: Node, project, state, clock, disk, leader')
    .addHelpText('after', '\nExits with 0 if it finds no problem, with 1 if it finds any. Writes nothing.')
    .action(async (flags) => (await import('../commands/doctor.ts')).doctorCommand(flags, new Date()))
}
