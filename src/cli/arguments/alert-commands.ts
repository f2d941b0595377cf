import type { Command } from 'commander'
import { alertKinds } from '../../contract/alert.ts'
import { examples, oneOfOption, serverCommand } from './command-parts.ts'

/** The commands about alerts. */
export function alertCommands(program: Command): void {
  const alerts = program.command('alerts').description('see which alerts were sent, and try them').helpCommand(false)
  const commands = () => import('../commands/observing/alerts.ts')

  serverCommand(alerts, 'list', 'list alerts that were raised, newest first')
    .addOption(oneOfOption('--status <status>', 'only these', ['pending', 'delivered', 'failed']))
    .addOption(oneOfOption('--kind <kind>', 'only about this', [...alertKinds, 'test']))
    .option('--target <name>', 'only those of this alert of the config')
    .option('--limit <n>', 'how many (default: 50)')
    .addHelpText('after', examples('servo alerts list --status failed'))
    .action(async (flags) => (await commands()).listAlerts(flags))

  serverCommand(alerts, 'targets', 'list the alerts of the config, and what each lacks').action(async (flags) =>
    (await commands()).listAlertTargets(flags),
  )

  serverCommand(alerts, 'test [target]', 'send a test to one target or to all, and say whether it arrived').action(
    async (target: string | undefined, flags) => (await commands()).testAlerts(target, flags),
  )
}
