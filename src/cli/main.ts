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

watchOutput()
try {
  await program.parseAsync()
} catch (error) {
  // Commander has printed what was wrong with the words; help and version are not errors.
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2
  else fail(error)
}
