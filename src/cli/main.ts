#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { Command, CommanderError, Option } from 'commander'
import { fail, printable, watchOutput } from './output.ts'

/** What every command that opens a workspace understands. */
export interface WorkspaceFlags {
  tenant?: string
  workspace?: string
  json?: boolean
}

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }

const program = new Command('servo')
  .description('A data-asset orchestrator whose state is a ledger and Parquet tables.')
  .version(version)
  .showHelpAfterError('(run with --help for what there is)')
  .configureOutput({ outputError: (text, write) => write(printable(text)) })
  .exitOverride()

/** Each command is loaded when it is run, so that `--help` starts as fast as Node does. */
function command(usage: string, description: string): Command {
  return program
    .command(usage)
    .description(description)
    .addOption(new Option('--tenant <name>', 'tenant, when the folder holds several'))
    .addOption(new Option('--workspace <name>', 'workspace, when the tenant has several'))
    .option('--json', 'print JSON')
}

const QUERY_HELP = `
Shows the newest published state; facts that are not folded yet are not in it.

  servo query .servo "show tables"
  servo query .servo "select state, count(*) from tasks group by state"`

command('verify <dir>', 'check every checksum and prove that the tables follow from the ledger')
  .option('--quick', 'check what is there, without replaying the ledger')
  .action(async (dir: string, flags) => (await import('./commands/verify.ts')).verifyCommand(dir, flags))

command('rebuild <dir>', 'make the tables again from the ledger').action(async (dir: string, flags) =>
  (await import('./commands/rebuild.ts')).rebuildCommand(dir, flags),
)

command('query <dir> <sql>', 'ask the published tables in SQL (DuckDB)')
  .addOption(new Option('--csv', 'print CSV').conflicts('json'))
  .addHelpText('after', QUERY_HELP)
  .action(async (dir: string, sql: string, flags) => (await import('./commands/query.ts')).queryCommand(dir, sql, flags))

command('attach <dir>', 'write attach.sql, which shows the tables to the DuckDB command line').action(
  async (dir: string, flags) => (await import('./commands/attach.ts')).attachCommand(dir, flags),
)

/** Commands about a project find it from where they are run. */
function projectCommand(parent: Command, usage: string, description: string): Command {
  return parent
    .command(usage)
    .description(description)
    .option('--project <dir>', 'folder of servo.config.ts (default: the nearest one above)')
    .option('--json', 'print JSON')
}

const several = (value: string, before: string[] = []): string[] => [...before, value]

projectCommand(program, 'dev', 'run everything on this machine, and load code again when it is saved')
  .option('--port <number>', 'port of the server (default: 4400, or any free one)')
  .option('--concurrency <number>', 'how many tasks run at a time')
  .option('--run <selection>', 'run this once everything is up; may be repeated', several)
  .action(async (flags) => (await import('./commands/dev.ts')).devCommand(flags))

const RUN_HELP = `
  servo run mart/revenue                 one asset
  servo run '+key:"mart/revenue"'        it and everything it is made from
  servo run 'group:staging and kind:sql' by what assets are
  servo run '*' --wait                   everything, and wait for the end`

projectCommand(program, 'run <selection...>', 'materialize assets')
  .option('--wait', 'show what happens until the run is over')
  .option('--partition <key>', 'partition to materialize; may be repeated', several)
  .option('--key <key>', 'name of the request: the same key asked for again is the same run')
  .option('--label <name=value>', 'label of the run; may be repeated', several)
  .option('--priority <number>', 'larger runs first')
  .option('--concurrency <number>', 'how many tasks run at a time, when no server runs')
  .option('--quiet', 'do not show what tasks print')
  .addHelpText('after', RUN_HELP)
  .action(async (selection: string[], flags) => (await import('./commands/run.ts')).runCommand(selection, flags))

const runs = program.command('runs').description('look at runs, stop them, run them again')

projectCommand(runs, 'list', 'the newest runs')
  .option('--limit <number>', 'how many', '20')
  .option('--state <state>', 'only runs in this state, e.g. failed')
  .action(async (flags) => (await import('./commands/runs.ts')).listRuns(flags))

projectCommand(runs, 'show <run>', 'one run and its tasks; the beginning of its id is enough').action(
  async (run: string, flags) => (await import('./commands/runs.ts')).showRun(run, flags),
)

projectCommand(runs, 'cancel <run>', 'stop a run')
  .option('--reason <text>', 'why, for the record')
  .action(async (run: string, flags) => (await import('./commands/runs.ts')).cancelRun(run, flags))

projectCommand(runs, 'rerun <run>', 'run again what did not succeed')
  .option('--all', 'all of it')
  .option('--select <selection>', 'this part of it')
  .option('--wait', 'show what happens until the run is over')
  .option('--key <key>', 'name of the request: the same key asked for again is the same run')
  .action(async (run: string, flags) => (await import('./commands/runs.ts')).rerunRun(run, flags))

projectCommand(runs, 'logs <run>', 'what the tasks of a run printed')
  .option('-f, --follow', 'go on until the run is over')
  .option('--task <key>', 'only this task')
  .option('--attempt <number>', 'only this attempt')
  .action(async (run: string, flags) => (await import('./commands/runs.ts')).showLogs(run, flags))

watchOutput()
try {
  await program.parseAsync()
} catch (error) {
  // Commander has printed what was wrong with the words; help and version are not errors.
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2
  else fail(error)
}
