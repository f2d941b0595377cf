import type { Command } from 'commander'
import { examples, oneOfOption, serverCommand } from './command-parts.ts'

/** The commands about who may call the server. */
export function tokenCommands(program: Command): void {
  program.commandsGroup('Let others in:')

  serverCommand(program, 'login', 'print a link that signs a browser in, once, as you')
    .addHelpText('after', examples('open "$(servo login)"'))
    .action(async (flags) => (await import('../commands/access/login.ts')).loginCommand(flags))

  const tokens = program.command('tokens').description('make tokens for the API, list them, revoke them').helpCommand(false)
  const commands = () => import('../commands/access/tokens.ts')

  serverCommand(tokens, 'create', 'make a token and print it; it is not shown again')
    .addOption(
      oneOfOption('--role <role>', 'what its bearer may do (required)', [
        'viewer',
        'operator',
        'admin',
        'worker',
      ]).makeOptionMandatory(),
    )
    .requiredOption('--name <name>', 'who uses it (required); goes on record with everything that is done with it')
    .option('--expires <duration>', 'when it ends: 12h, 30d or never (default: 90d)')
    .addHelpText(
      'after',
      examples(
        'servo tokens create --role operator --name ci --expires 30d',
        'export SERVO_TOKEN=$(servo tokens create --role viewer --name notebook)',
      ),
    )
    .action(async (flags) => (await commands()).createToken(flags, new Date()))

  serverCommand(tokens, 'list', 'list tokens, newest first').action(async (flags) => (await commands()).listTokens(flags))

  serverCommand(tokens, 'revoke <id>', 'revoke a token; within a second no server accepts it').action(
    async (id: string, flags) => (await commands()).revokeToken(id, flags),
  )
}
