import { type Command, Option } from 'commander'
import { between, examples, keyedBy, oneOfOption, projectCommand, serverCommand, several } from './command-parts.ts'

const DETACH = 'print the id of the run and exit; the server carries on with it'

const HOST = 'address to listen on; others than loopback need a token or OIDC, and SERVO_PUBLIC_URL (default: 127.0.0.1)'
const PROXY = 'address or network of a proxy whose X-Forwarded-* headers count; may be repeated'

/** The commands that run assets, and those about runs. */
export function runCommands(program: Command): void {
  program.commandsGroup('Run assets:')

  projectCommand(program, 'dev', 'run the server of the project here; reload code when you save it')
    .option('--port <number>', 'port of the server (default: 4400, or any free port)')
    .option('--host <address>', HOST)
    .option('--trusted-proxy <network>', PROXY, several)
    .option('--concurrency <number>', 'how many tasks run at a time')
    .option('--run <selection>', 'run this once the server is up; may be repeated', several)
    .option('--no-automation', 'do not run schedules and sensors')
    .addHelpText(
      'after',
      examples(
        'servo dev                    until Ctrl-C; the next start resumes unfinished runs',
        "servo dev --run '*'          run everything first",
        'servo dev --json             print each event as a JSON object on its own line',
      ),
    )
    .action(async (flags) => (await import('../commands/dev.ts')).devCommand(flags))

  projectCommand(program, 'start', 'run the server of the project for good: with a log, and without watching code')
    .option('--port <number>', 'port of the server (default: 4400)')
    .option('--host <address>', HOST)
    .option('--trusted-proxy <network>', PROXY, several)
    .option('--concurrency <number>', 'how many tasks run at a time')
    .option('--no-automation', 'do not run schedules and sensors')
    .option('--drain <seconds>', 'how long running tasks may go on after SIGTERM (default: 25)')
    .addOption(
      oneOfOption('--log-format <format>', 'json: an object per line; text on a terminal (or SERVO_LOG_FORMAT)', [
        'json',
        'text',
      ]),
    )
    .addHelpText(
      'after',
      `
Writes its log to standard error. SIGTERM ends it with 0: nothing begins any more, running tasks end or are cancelled
and run again at the next start. A second SIGTERM ends it at once.
${examples('servo start --port 4400 --drain 60', 'servo start --log-format text')}`,
    )
    .action(async (flags) => (await import('../serving/start.ts')).startCommand(flags))

  keyedBy(
    serverCommand(program, 'run [selection...]', 'materialize assets')
      .option('--detach', DETACH)
      .option('--partition <key>', 'partition to materialize, a range, latest, or * for all; may be repeated', several)
      .option('--stale', 'only stale partitions, including missing ones')
      .option('--missing', 'only partitions that were never materialized')
      .option('--failed', 'only partitions whose last attempt failed')
      .addOption(new Option('--dry-run', 'show what would run and why, and run nothing').conflicts('detach')),
    'run',
  )
    .option('--label <name=value>', 'label of the run; may be repeated', several)
    .option('--priority <number>', 'runs with a higher number start first, from -1000 to 1000')
    .option('--concurrency <number>', 'how many tasks run at a time, if no server is running')
    .option('--quiet', 'do not show what tasks print')
    .addHelpText(
      'after',
      `
Waits for the run to end. The exit code is 0 if it succeeded, 1 if not. If the server of the project is running
(servo dev), it runs the assets, and Ctrl-C leaves the run to it. Otherwise they run here, and Ctrl-C cancels the run.
${examples(
  'servo run mart/revenue                  one asset',
  `servo run '+key:"mart/revenue"'         the asset and everything upstream of it`,
  "servo run 'group:mart and kind:sql'     by group, kind, tag or owner",
  'servo run --stale --dry-run             what should be made again, and why',
  'servo run mart/daily --partition latest the last day that is over',
  "servo run '*' --detach                  everything, without waiting",
)}`,
    )
    .action(async (selection: string[], flags) => (await import('../commands/run.ts')).runAssets(selection, flags))

  const runs = program.command('runs').description('list runs, show them, cancel them, run them again').helpCommand(false)

  between(
    serverCommand(runs, 'list', 'list runs, newest first')
      .option('--limit <number>', 'how many to list (default: 20)')
      .addOption(
        oneOfOption('--status <status>', 'only runs of this status', [
          'pending',
          'running',
          'succeeded',
          'failed',
          'cancelled',
        ]),
      )
      .option('--asset <asset>', 'only runs that have a task for this asset'),
    'runs requested',
  )
    .addHelpText(
      'after',
      examples(
        'servo runs list --status failed --since 2025-01-15',
        'servo runs list --asset mart/revenue --json run_id,state',
      ),
    )
    .action(async (flags) => (await import('../commands/runs.ts')).listRuns(flags))

  serverCommand(runs, 'show <run>', 'show a run and its tasks; the beginning of the id is enough').action(
    async (run: string, flags) => (await import('../commands/runs.ts')).showRun(run, flags),
  )

  serverCommand(runs, 'cancel <run>', 'cancel a run')
    .option('--reason <text>', 'why, for the record')
    .action(async (run: string, flags) => (await import('../commands/runs.ts')).cancelRun(run, flags))

  keyedBy(
    serverCommand(runs, 'rerun <run>', 'run again what failed, was skipped or was cancelled')
      .option('--all', 'run all of it again')
      .addOption(new Option('--select <selection>', 'run this part of it again').conflicts('all'))
      .option('--detach', DETACH),
    'run',
  )
    .addHelpText(
      'after',
      examples(
        'servo runs rerun run_p63ur5gr                    what did not succeed',
        'servo runs rerun run_p63ur5gr --all              all of it',
        `servo runs rerun run_p63ur5gr --select 'key:"mart/revenue"+'`,
      ),
    )
    .action(async (run: string, flags) => (await import('../commands/runs.ts')).rerunRun(run, flags))

  serverCommand(runs, 'logs <run>', 'print what the tasks of a run printed')
    .option('-f, --follow', 'keep printing until the run ends')
    .option('--task <key>', 'only this task')
    .option('--attempt <number>', 'only this attempt')
    .action(async (run: string, flags) => (await import('../commands/runs.ts')).showLogs(run, flags))
}
