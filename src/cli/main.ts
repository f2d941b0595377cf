import { readFileSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { Command, CommanderError, Option } from 'commander'
import { ServoError } from '../lib/error.ts'
import { assetCommands } from './arguments/asset-commands.ts'
import { automationCommands } from './arguments/automation-commands.ts'
import { beginCommands } from './arguments/begin-commands.ts'
import { examples, projectCommand, several } from './arguments/command-parts.ts'
import { shellCommands } from './arguments/shell-commands.ts'
import { colours, fail, printable, speakJson, watchOutput } from './output.ts'

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }

/** True if `--json` is among the arguments, not behind `--`, where it would be a name. */
const asksForJson = (): boolean => process.argv.slice(2, argumentsEnd()).includes('--json')
const argumentsEnd = (): number | undefined => {
  const at = process.argv.indexOf('--', 2)
  return at < 0 ? undefined : at
}

/** All commands with their arguments and options, from which the reference page is written too. */
export const program = new Command('servo')
  .description('A data-asset orchestrator whose state is a ledger and Parquet tables.')
  .version(version, '-V, --version', 'print the version')
  .addOption(new Option('-v').hideHelp())
  .on('option:v', () => {
    process.stdout.write(`${version}\n`)
    throw new CommanderError(0, 'commander.version', version)
  })
  .helpOption('-h, --help', 'print this; servo <command> --help prints more')
  .helpCommand(false)
  .configureHelp({ styleTitle: (title) => colours.bold(title) })
  .showHelpAfterError('(run with --help for what there is)')
  // A mistake in the arguments is found before it is known which command and flags are meant.
  .configureOutput({
    writeErr: (text) => {
      if (!asksForJson()) process.stderr.write(text)
    },
    outputError: (text, write) => write(printable(text)),
  })
  .exitOverride()
  .hook('preAction', (_, command) => {
    if (command.opts()['json']) speakJson()
  })
  .addHelpText(
    'after',
    `
Exit codes: 0 fine, 1 a run failed or a check did, 2 wrong use, 3 something needed is unavailable, 4 a bug in Servo.`,
  )

// Each command is loaded when it is run, so that --help starts as fast as Node does.

beginCommands(program)

program.commandsGroup('Run assets:')

projectCommand(program, 'dev', 'run everything on this machine, and load code again when it is saved')
  .option('--port <number>', 'port of the server (default: 4400, or any free one)')
  .option('--concurrency <number>', 'how many tasks run at a time')
  .option('--run <selection>', 'run this once everything is up; may be repeated', several)
  .option('--no-automation', 'let no schedule tick and evaluate no sensor')
  .addHelpText(
    'after',
    examples(
      'servo dev                    until Ctrl-C; what was running goes on at the next start',
      "servo dev --run '*'          and run everything first",
      'servo dev --json             a JSON object per line for everything that happens',
    ),
  )
  .action(async (flags) => (await import('./commands/dev.ts')).devCommand(flags))

projectCommand(program, 'run [selection...]', 'materialize assets')
  .option('--detach', 'answer at once, with the id of the run; the server goes on with it')
  .option('--partition <key>', 'partition to materialize, a range, latest, or * for all; may be repeated', several)
  .option('--stale', 'only what is stale, never made included; of all assets, or of a selection')
  .option('--missing', 'only what was never made')
  .option('--failed', 'only what failed the last time')
  .addOption(new Option('--dry-run', 'say what would run and why, and run nothing').conflicts('detach'))
  .option('--key <key>', 'name of the request: the same key asked for again is the same run')
  .option('--label <name=value>', 'label of the run; may be repeated', several)
  .option('--priority <number>', 'runs with a higher number start first')
  .option('--concurrency <number>', 'how many tasks run at a time, when no server runs')
  .option('--quiet', 'do not show what tasks print')
  .addHelpText(
    'after',
    `
Waits until the run is over; the exit code is 0 if it succeeded, and 1 if not. The server of the project (servo dev)
runs the assets, and Ctrl-C leaves them to it. Without a server they run here, and Ctrl-C cancels them.
${examples(
  'servo run mart/revenue                  one asset',
  `servo run '+key:"mart/revenue"'         it and everything it is made from`,
  "servo run 'group:mart and kind:sql'     by what assets are",
  'servo run --stale --dry-run             what should be made again, and why',
  'servo run mart/daily --partition latest the last day that is over',
  "servo run '*' --detach                  everything, without waiting",
)}`,
  )
  .action(async (selection: string[], flags) => (await import('./commands/run.ts')).runAssets(selection, flags))

const runs = program.command('runs').description('look at runs, stop them, run them again').helpCommand(false)

projectCommand(runs, 'list', 'the newest runs')
  .option('--limit <number>', 'how many', '20')
  .option('--state <state>', 'only runs that are pending, running, succeeded, failed or cancelled')
  .action(async (flags) => (await import('./commands/runs.ts')).listRuns(flags))

projectCommand(runs, 'show <run>', 'one run and its tasks; the beginning of its id is enough').action(
  async (run: string, flags) => (await import('./commands/runs.ts')).showRun(run, flags),
)

projectCommand(runs, 'cancel <run>', 'stop a run')
  .option('--reason <text>', 'why, for the record')
  .action(async (run: string, flags) => (await import('./commands/runs.ts')).cancelRun(run, flags))

projectCommand(runs, 'rerun <run>', 'run again what did not succeed')
  .option('--all', 'all of it')
  .addOption(new Option('--select <selection>', 'this part of it').conflicts('all'))
  .option('--detach', 'answer at once, with the id of the run; the server goes on with it')
  .option('--key <key>', 'name of the request: the same key asked for again is the same run')
  .addHelpText(
    'after',
    examples(
      'servo runs rerun run_p63ur5gr                    what failed, was skipped or cancelled',
      'servo runs rerun run_p63ur5gr --all              all of it',
      `servo runs rerun run_p63ur5gr --select 'key:"mart/revenue"+'`,
    ),
  )
  .action(async (run: string, flags) => (await import('./commands/runs.ts')).rerunRun(run, flags))

projectCommand(runs, 'logs <run>', 'what the tasks of a run printed')
  .option('-f, --follow', 'go on until the run is over')
  .option('--task <key>', 'only this task')
  .option('--attempt <number>', 'only this attempt')
  .action(async (run: string, flags) => (await import('./commands/runs.ts')).showLogs(run, flags))

program.commandsGroup('Look at assets:')

assetCommands(program)

const partitions = program
  .command('partitions')
  .description('what is made, what is stale and why; keys that come and go')
  .helpCommand(false)

projectCommand(partitions, 'status [selection]', 'how many partitions of each asset are made, stale or missing').action(
  async (select: string | undefined, flags) => (await import('./commands/partition-status.ts')).showSummaries(select, flags),
)

projectCommand(partitions, 'list [selection]', 'the partitions of assets, the newest first')
  .option('--partition <partition>', 'only this one, or a range such as 2025-01-01..2025-01-31')
  .option('--status <status>', 'materialized, stale, never_materialized or materialized_but_last_attempt_failed')
  .option('--oldest', 'the oldest first')
  .option('--limit <number>', 'how many', '50')
  .option('--cursor <cursor>', 'go on where a page ended')
  .action(async (select: string | undefined, flags) =>
    (await import('./commands/partition-status.ts')).listPartitions(select, flags),
  )

projectCommand(partitions, 'stale [selection]', 'partitions that should be made again, or for the first time')
  .option(
    '--cause <cause>',
    'only with this cause: never_materialized, code_changed, upstream_missing, upstream_changed or freshness',
  )
  .option('--limit <number>', 'how many', '50')
  .option('--cursor <cursor>', 'go on where a page ended')
  .action(async (select: string | undefined, flags) =>
    (await import('./commands/partition-status.ts')).listStale(select, flags),
  )

projectCommand(partitions, 'why <asset> [partition]', 'every reason why it is stale, and where each comes from')
  .addHelpText(
    'after',
    examples(
      'servo partitions why mart/revenue',
      'servo partitions why mart/daily 2025-01-15',
      'servo partitions why mart/sales date=2025-01-15,region=eu',
    ),
  )
  .action(async (asset: string, partition: string | undefined, flags) =>
    (await import('./commands/partition-status.ts')).showWhy(asset, partition, flags),
  )

for (const change of ['add', 'remove'] as const) {
  const description =
    change === 'add' ? 'add keys to a dynamic set' : 'remove keys from a dynamic set; what was made of them stays'
  projectCommand(partitions, `${change} <set> <key...>`, description)
    .option('--key <key>', 'name of the request: the same key asked for again is the same request')
    .action(async (set: string, keys: string[], flags) =>
      (await import('./commands/partition-keys.ts')).changeSetKeys(change, set, keys, flags),
    )
}

projectCommand(partitions, 'keys <set>', 'the keys of a dynamic set').action(async (set: string, flags) =>
  (await import('./commands/partition-keys.ts')).listKeys(set, flags),
)

projectCommand(partitions, 'report <asset>', 'tell that something outside Servo materialized an asset')
  .option('--partition <key>', 'partition or range that was materialized; may be repeated', several)
  .option('--at <moment>', 'when, such as 2025-01-15T10:00:00Z (default: now)')
  .option('--materialization <id>', 'name of what was made')
  .option('--code-version <version>', 'version of the code that made it')
  .option('--data-version <version>', 'version of the data: equal data has equal versions')
  .option('--metadata <name=value>', 'fact to keep with it; may be repeated', several)
  .option('--key <key>', 'name of the request: the same key asked for again is the same report')
  .addHelpText(
    'after',
    examples(
      'servo partitions report raw/customers                             new data came',
      'servo partitions report raw/orders --partition 2025-01-01..2025-01-31',
    ),
  )
  .action(async (asset: string, flags) => (await import('./commands/partition-facts.ts')).reportPartitions(asset, flags))

projectCommand(partitions, 'wipe <asset>', 'let what was materialized count as never made; asks first')
  .option('--partition <key>', 'partition or range to wipe, * for all; may be repeated', several)
  .option('--reason <text>', 'why, for the record')
  .option('--yes', 'do not ask; needed where there is no terminal')
  .option('--key <key>', 'name of the request: the same key asked for again is the same request')
  .action(async (asset: string, flags) => (await import('./commands/partition-facts.ts')).wipePartitions(asset, flags))

program.commandsGroup('Automate:')
automationCommands(program)

program.commandsGroup('Look into the state:')

/** Commands about a folder of state, whether or not its project is near. */
function command(usage: string, description: string): Command {
  return program
    .command(usage)
    .description(description)
    .addOption(new Option('--tenant <name>', 'tenant, when the folder holds several'))
    .addOption(new Option('--workspace <name>', 'workspace, when the tenant has several'))
    .option('--json', 'print JSON')
}

command('query <dir> <sql>', 'ask the published tables in SQL (DuckDB)')
  .addOption(new Option('--csv', 'print CSV').conflicts('json'))
  .addHelpText(
    'after',
    `
Shows the newest published state; facts that are not folded yet are not in it.
${examples('servo query .servo "show tables"', 'servo query .servo "select state, count(*) from tasks group by state"')}`,
  )
  .action(async (dir: string, sql: string, flags) => (await import('./commands/query.ts')).queryCommand(dir, sql, flags))

command('verify <dir>', 'check every checksum and prove that the tables follow from the ledger')
  .option('--quick', 'check what is there, without replaying the ledger')
  .action(async (dir: string, flags) => (await import('./commands/verify.ts')).verifyCommand(dir, flags))

command('rebuild <dir>', 'make the tables again from the ledger').action(async (dir: string, flags) =>
  (await import('./commands/rebuild.ts')).rebuildCommand(dir, flags),
)

command('attach <dir>', 'write attach.sql, which shows the tables to the DuckDB command line').action(
  async (dir: string, flags) => (await import('./commands/attach.ts')).attachCommand(dir, flags),
)

program.commandsGroup('Write schedules:')

const cron = program.command('cron').description('when cron expressions tick, and what they say').helpCommand(false)

/** Adds a command about cron expressions, which needs neither a project nor a server. */
function cronCommand(usage: string, description: string): Command {
  return cron
    .command(usage)
    .description(description)
    .option('--timezone <zone>', 'IANA name of the time zone, such as Europe/Paris (default: UTC)')
    .option('--json', 'print JSON')
}

cronCommand('next <expression...>', 'the next ticks, each instant once when there are several expressions')
  .option('--from <moment>', 'ticks after this, such as 2025-01-15T10:00 in the zone (default: now)')
  .option('--count <number>', 'how many, from 1 to 1000', '5')
  .addHelpText(
    'after',
    examples(
      'servo cron next "0 6 * * MON-FRI" --timezone Europe/Paris',
      'servo cron next "0 6 * * MON-FRI" "0 9 * * SAT,SUN" --count 7',
    ),
  )
  .action(async (expressions: string[], flags) =>
    (await import('./commands/cron.ts')).nextTicks(expressions, flags, new Date()),
  )

cronCommand('explain <expression...>', 'an expression in words, how often it ticks, and what changes of clocks do to it')
  .addHelpText('after', examples('servo cron explain "30 2 * * L5" --timezone America/New_York'))
  .action(async (expressions: string[], flags) =>
    (await import('./commands/cron.ts')).explainCron(expressions, flags, new Date()),
  )

shellCommands(program)

/** A mistake in the arguments, as other mistakes are told to programs. */
function wrongUse({ code, message }: CommanderError): ServoError {
  const [first = '', suggestion] = message.replace(/^error: /, '').split('\n')
  const isHelp = code === 'commander.help'
  const hint = suggestion?.replace(/^\((.*)\)$/, '$1') ?? 'Run it with --help for what there is.'
  return new ServoError('invalid', 'wrong_use', isHelp ? 'no command is named' : first, { hint })
}

/** Runs the command that the arguments of this process name. */
export async function main(): Promise<void> {
  // Commands are loaded after this, so that their compiled code is cached from the second start on.
  enableCompileCache()
  watchOutput()
  try {
    await program.parseAsync()
  } catch (error) {
    // Commander has printed the mistake in the arguments; help and version are not errors.
    if (!(error instanceof CommanderError)) fail(error)
    else if (error.exitCode !== 0 && asksForJson()) {
      speakJson()
      fail(wrongUse(error))
    } else process.exitCode = error.exitCode === 0 ? 0 : 2
  }
}
