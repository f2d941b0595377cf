import { type Command, Option } from 'commander'
import { examples, projectCommand } from './command-parts.ts'

/** The commands that show assets, and what they made. */
export function assetCommands(program: Command): void {
  const assets = program
    .command('assets')
    .description('the assets of the project, and how they depend on each other')
    .helpCommand(false)

  projectCommand(assets, 'list [selection...]', 'the assets of the newest graph, or those a selection means')
    .addHelpText(
      'after',
      examples(
        'servo assets list                    all of them',
        "servo assets list 'group:mart+'      those of a group, and everything made of them",
      ),
    )
    .action(async (select: string[], flags) => (await import('../commands/assets.ts')).listAssets(select, flags))

  projectCommand(assets, 'show <asset>', 'everything known of an asset').action(async (asset: string, flags) =>
    (await import('../commands/assets.ts')).showAsset(asset, flags),
  )

  projectCommand(assets, 'graph [selection...]', 'what is made of what')
    .addOption(
      new Option('--format <format>', 'for another program: dot (Graphviz) or mermaid')
        .choices(['dot', 'mermaid'])
        .conflicts('json'),
    )
    .addHelpText(
      'after',
      examples(
        'servo assets graph',
        `servo assets graph '+key:"mart/revenue"'             what it is made from`,
        'servo assets graph --format dot | dot -Tsvg > graph.svg',
      ),
    )
    .action(async (select: string[], flags) => (await import('../commands/assets.ts')).showGraph(select, flags))

  projectCommand(program, 'show <asset>', 'the rows or the value that an asset has now')
    .option('--partition <partition>', 'only this one, or a range such as 2025-01-01..2025-01-31')
    .option('--limit <number>', 'how many rows', '50')
    .addOption(
      new Option('--format <format>', 'table, json or csv (default: table)')
        .choices(['table', 'json', 'csv'])
        .conflicts('json'),
    )
    .addHelpText(
      'after',
      `
Shows the rows of a table, a JSON value, and of any other file where it lies. Of an asset with partitions it
shows all that are made, the newest first, each row with its partition.
${examples('servo show mart/revenue', 'servo show mart/daily --partition 2025-01-15 --format csv > daily.csv')}`,
    )
    .action(async (asset: string, flags) => (await import('../commands/show.ts')).showValue(asset, flags))
}
