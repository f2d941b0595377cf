import type { Command } from 'commander'
import { examples, keyedBy, oneOfOption, pagedBy, serverCommand, several } from './command-parts.ts'

const statusCommands = () => import('../commands/partition-status.ts')

/** The commands about partitions: their status, the keys of dynamic sets, and facts that others report. */
export function partitionCommands(program: Command): void {
  const partitions = program
    .command('partitions')
    .description('show which partitions are made or stale and why; add and remove keys')
    .helpCommand(false)

  serverCommand(
    partitions,
    'status [selection...]',
    'count the partitions of each asset that are made, stale, failed or missing',
  ).action(async (select: string[], flags) => (await statusCommands()).showSummaries(select, flags))

  pagedBy(
    serverCommand(partitions, 'list [selection...]', 'list partitions, newest first')
      .option('--partition <partition>', 'only this partition, or a range such as 2025-01-01..2025-01-31')
      .addOption(
        oneOfOption('--status <status>', 'only partitions with this status', ['materialized', 'stale', 'failed', 'missing']),
      )
      .option('--oldest', 'oldest first'),
  )
    .addHelpText('after', examples('servo partitions list mart/daily --status failed --json partition_key,last_attempt_run_id'))
    .action(async (select: string[], flags) => (await statusCommands()).listPartitions(select, flags))

  pagedBy(
    serverCommand(partitions, 'stale [selection...]', 'list partitions to materialize: stale and missing ones').addOption(
      oneOfOption('--cause <cause>', 'only partitions that are stale for this cause', [
        'never_materialized',
        'code_changed',
        'upstream_missing',
        'upstream_changed',
        'freshness',
      ]),
    ),
  ).action(async (select: string[], flags) => (await statusCommands()).listStale(select, flags))

  serverCommand(partitions, 'why <asset> [partition]', 'explain why a partition is stale')
    .addHelpText(
      'after',
      examples(
        'servo partitions why mart/revenue',
        'servo partitions why mart/daily 2025-01-15',
        'servo partitions why mart/sales date=2025-01-15,region=eu',
      ),
    )
    .action(async (asset: string, partition: string | undefined, flags) =>
      (await statusCommands()).showWhy(asset, partition, flags),
    )

  keyCommands(partitions)
  factCommands(partitions)
}

function keyCommands(partitions: Command): void {
  const descriptions = {
    add: 'add keys to a dynamic set',
    remove: 'remove keys from a dynamic set; what was made of them stays on record',
  }
  for (const change of ['add', 'remove'] as const)
    keyedBy(serverCommand(partitions, `${change} <set> <key...>`, descriptions[change])).action(
      async (set: string, keys: string[], flags) =>
        (await import('../commands/partition-keys.ts')).changeSetKeys(change, set, keys, flags),
    )

  serverCommand(partitions, 'keys <set>', 'list the keys of a dynamic set').action(async (set: string, flags) =>
    (await import('../commands/partition-keys.ts')).listKeys(set, flags),
  )
}

function factCommands(partitions: Command): void {
  keyedBy(
    serverCommand(partitions, 'report <asset>', 'record that another program materialized an asset')
      .option('--partition <key>', 'partition or range that was materialized; may be repeated', several)
      .option('--at <moment>', 'when, such as 2025-01-15T10:00:00Z (default: now)')
      .option('--materialization <id>', 'id of the materialization')
      .option('--code-version <version>', 'version of the code that made it')
      .option('--data-version <version>', 'version of the data; equal data has equal versions')
      .option('--metadata <name=value>', 'fact to keep with it; may be repeated', several),
    'report',
  )
    .addHelpText(
      'after',
      examples(
        'servo partitions report raw/customers                             new data arrived',
        'servo partitions report raw/orders --partition 2025-01-01..2025-01-31',
      ),
    )
    .action(async (asset: string, flags) => (await import('../commands/partition-facts.ts')).reportPartitions(asset, flags))

  keyedBy(
    serverCommand(partitions, 'wipe <asset>', 'make partitions count as never materialized; asks first')
      .option('--partition <key>', 'partition or range to wipe, * for all; may be repeated', several)
      .option('--reason <text>', 'why, for the record')
      .option('--yes', 'do not ask; required without a terminal'),
  ).action(async (asset: string, flags) => (await import('../commands/partition-facts.ts')).wipePartitions(asset, flags))

  serverCommand(partitions, 'purge <asset>', 'remove the bytes of values that were wiped or superseded; asks first')
    .option('--partition <key>', 'partition or range to purge, * for all; may be repeated', several)
    .option('--reason <text>', 'why, for the record')
    .option('--yes', 'do not ask; required without a terminal')
    .action(async (asset: string, flags) => (await import('../commands/retention.ts')).purgePartitions(asset, flags))
}
