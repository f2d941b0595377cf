import { type Command, Option } from 'commander'
import { examples, keyedBy, oneOfOption, pagedBy, serverCommand, several } from './command-parts.ts'

const backfillsOf = () => import('../commands/backfills.ts')

/** Backfills: many partitions by several runs. */
export function backfillCommands(program: Command): void {
  const backfills = program
    .command('backfills')
    .alias('backfill')
    .description('materialize many partitions, chunk by chunk')
    .helpCommand(false)

  /** Which partitions, and in which chunks. */
  const partitionOptions = (command: Command): Command =>
    command
      .option('--start <key>', 'first partition')
      .option('--end <key>', 'last partition')
      .option(
        '--partitions <keys>',
        'these partitions, separated by commas, or one key of several dimensions; may be repeated',
        several,
      )
      .option(
        '--filter <dimension=pattern>',
        'partitions that match, such as region=eu-*; may be repeated for other dimensions',
        several,
      )
      .addOption(
        oneOfOption('--only <state>', 'only partitions in this state; with --filter or --partitions, only missing', [
          'missing',
          'failed',
          'stale',
        ]),
      )
      .option('--all', 'all partitions')
      .option('--skip-existing', 'leave out partitions that exist already')
      .addOption(new Option('--force', 'materialize partitions that exist already again (default)').conflicts('skipExisting'))
      .option('--newest-first', 'begin with the last partitions')
      .option('--chunk-size <number>', 'partitions per run (default: what the asset declares, or 10)')
      .option('--concurrency <number>', 'runs at a time (default: 2)')

  partitionOptions(serverCommand(backfills, 'preview <asset...>', 'show what a backfill would do, and do nothing'))
    .addHelpText('after', examples('servo backfills preview mart/revenue --start 2025-01-01 --end 2025-12-31'))
    .action(async (assets: string[], flags) => (await backfillsOf()).previewBackfill(assets, flags))

  keyedBy(
    partitionOptions(serverCommand(backfills, 'create <asset...>', 'create a backfill'))
      .option('--priority <number>', 'runs with a higher number start first, from -1000 to 1000 (default: -100)')
      .option('--stop-after-failures <number>', 'plan no more chunks after so many have failed')
      .option('--wait', 'wait for its end, and exit with 1 if it does not succeed; needs a server'),
    'backfill',
  )
    .addHelpText(
      'after',
      examples(
        'servo backfills create mart/revenue --start 2025-01-01 --end 2025-12-31 --wait',
        'servo backfills create mart/revenue --only missing --chunk-size 50 --concurrency 4',
      ),
    )
    .action(async (assets: string[], flags) => (await backfillsOf()).createBackfill(assets, flags))

  pagedBy(serverCommand(backfills, 'list', 'list backfills, newest first'))
    .addOption(
      oneOfOption('--status <status>', 'only backfills of this status', [
        'pending',
        'running',
        'paused',
        'succeeded',
        'failed',
        'cancelled',
      ]),
    )
    .option('--asset <key>', 'only backfills of this asset')
    .action(async (flags) => (await backfillsOf()).listBackfills(flags))

  serverCommand(backfills, 'show <backfill>', 'show the progress of a backfill, and what failed').action(
    async (id: string, flags) => (await backfillsOf()).showBackfill(id, flags),
  )

  const switches = {
    pause: 'pause a backfill: it plans no more chunks, and its runs go on',
    resume: 'resume a paused backfill',
  }
  for (const change of ['pause', 'resume'] as const)
    keyedBy(
      serverCommand(backfills, `${change} <backfill>`, switches[change])
        .option('--reason <text>', 'why, for the record')
        .option('--expected-state-version <number>', 'refuse if somebody changed it since'),
    ).action(async (id: string, flags) => (await backfillsOf()).switchBackfill(change, id, flags))

  keyedBy(
    serverCommand(backfills, 'change <backfill>', 'change how a backfill goes on')
      .option('--concurrency <number>', 'runs at a time')
      .option('--priority <number>', 'runs that are planned from now on have this priority')
      .option('--stop-after-failures <number>', 'plan no more chunks after so many have failed, or none for any number')
      .option('--expected-state-version <number>', 'refuse if somebody changed it since'),
  ).action(async (id: string, flags) => (await backfillsOf()).changeBackfill(id, flags))

  keyedBy(
    serverCommand(backfills, 'cancel <backfill>', 'cancel a backfill; runs that have begun go on')
      .option('--cancel-runs', 'cancel runs that have begun, too')
      .option('--reason <text>', 'why, for the record')
      .option('--expected-state-version <number>', 'refuse if somebody changed it since'),
  ).action(async (id: string, flags) => (await backfillsOf()).switchBackfill('cancel', id, flags))

  keyedBy(
    serverCommand(
      backfills,
      'retry-failed <backfill>',
      'make another backfill of exactly what failed, and what was skipped because of it',
    ).option('--wait', 'wait for its end, and exit with 1 if it does not succeed; needs a server'),
    'backfill',
  ).action(async (id: string, flags) => (await backfillsOf()).retryFailed(id, flags))
}
