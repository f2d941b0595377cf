import { Argument, type Command } from 'commander'
import { ServoError } from '../../lib/error.ts'
import { nearest } from '../../lib/nearest.ts'
import { examples } from './command-parts.ts'

/** Commands about the command line itself. */
export function shellCommands(program: Command): void {
  program.commandsGroup('Set up a shell:')

  program
    .command('completion')
    .description('print the completion script of a shell')
    .addArgument(new Argument('<shell>').choices(['bash', 'zsh', 'fish']))
    .addHelpText(
      'after',
      examples(
        'source <(servo completion bash)       in ~/.bashrc',
        'source <(servo completion zsh)        in ~/.zshrc, after compinit',
        'servo completion fish | source        in ~/.config/fish/config.fish',
      ),
    )
    .action(async (shell: 'bash' | 'zsh' | 'fish') =>
      (await import('../completion/print-script.ts')).printScript(shell, program),
    )

  // What those scripts ask.
  program
    .command('complete <kind> <current> [words...]', { hidden: true })
    .action(async (kind: string, current: string, words: string[]) =>
      (await import('../commands/complete.ts')).completeCommand(kind, current, words),
    )

  program
    .command('help [command...]', { hidden: true })
    .description('print the help of a command, as --help does')
    .action((words: string[]) => words.reduce(commandBelow, program).outputHelp())
}

function commandBelow(command: Command, word: string): Command {
  const names = (each: Command): string[] => [each.name(), ...each.aliases()]
  const found = command.commands.find((each) => names(each).includes(word))
  if (found !== undefined) return found
  const meant = nearest(word, command.createHelp().visibleCommands(command).flatMap(names))
  throw new ServoError('invalid', 'wrong_use', `unknown command '${word}'`, {
    hint: meant === undefined ? 'Run servo --help for a list of commands.' : `Did you mean ${meant}?`,
  })
}
