import { type Command, Option } from 'commander'
import { examples, projectCommand, serverCommand } from './command-parts.ts'

/** The commands that show assets, and what they made. */
export function assetCommands(program: Command): void {
  program.commandsGroup('Look at assets:')

  const assets = program.command('assets').description('list assets, show them, draw their graph').helpCommand(false)

  serverCommand(assets, 'list [selection...]', 'list assets, all of them or a selection')
    .addHelpText(
      'after',
      examples(
        'servo assets list                    all of them',
        "servo assets list 'group:mart+'      a group, and everything downstream of it",
      ),
    )
    .action(async (select: string[], flags) => (await import('../commands/assets.ts')).listAssets(select, flags))

  serverCommand(assets, 'show <asset>', 'show everything about an asset').action(async (asset: string, flags) =>
    (await import('../commands/assets.ts')).showAsset(asset, flags),
  )

  serverCommand(assets, 'graph [selection...]', 'draw how assets depend on each other')
    .addOption(new Option('--format <format>', 'format for another program').choices(['dot', 'mermaid']).conflicts('json'))
    .addHelpText(
      'after',
      examples(
        'servo assets graph',
        `servo assets graph '+key:"mart/revenue"'             an asset and everything upstream of it`,
        'servo assets graph --format dot | dot -Tsvg > graph.svg',
      ),
    )
    .action(async (select: string[], flags) => (await import('../commands/assets.ts')).showGraph(select, flags))

  projectCommand(program, 'show <asset>', 'show the rows or the value of an asset')
    .option('--partition <partition>', 'only this partition, or a range such as 2025-01-01..2025-01-31')
    .option('--limit <number>', 'how many rows (default: 50; all of them in a pipe or file as JSON or CSV)')
    .addOption(
      new Option('--format <format>', 'output format (default: table)').choices(['table', 'json', 'csv']).conflicts('json'),
    )
    .addHelpText(
      'after',
      `
Shows the rows of a table, or a JSON value; for any other file, its path and size. An asset with partitions
shows all that are made, newest first, each row with its partition.
${examples(
  'servo show mart/revenue',
  'servo show mart/revenue --json region,revenue       only these columns',
  'servo show mart/daily --partition 2025-01-15 --format csv > daily.csv',
)}`,
    )
    .action(async (asset: string, flags) => (await import('../commands/show.ts')).showValue(asset, flags))
}
