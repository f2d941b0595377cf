import { type Command, Option } from 'commander'
import { examples, printsJson, projectCommand, serverCommand } from './command-parts.ts'

/** The commands about the recorded state, of the project or of any folder of state. */
export function stateCommands(program: Command): void {
  program.commandsGroup('Inspect the state:')

  const command = (usage: string, description: string): Command =>
    projectCommand(program, usage, description)
      .option('--tenant <name>', 'tenant, if the folder has several')
      .option('--workspace <name>', 'workspace, if the tenant has several')

  serverCommand(program, 'events', 'print what happened, or what happens')
    .option('-f, --follow', 'keep printing what happens from now on')
    .option('--after <place>', 'begin behind this event: its id, `beginning` or `now`')
    .option('--run <run>', 'only events of this run')
    .option('--type <types>', 'only events of these types, separated by commas')
    .option('--asset <key>', 'only events of this asset')
    .option('--limit <number>', 'how many (default: 100); --follow has no limit')
    .addHelpText('after', examples('servo events --follow', 'servo events --type RunRequested,TaskFinished --json'))
    .action(async (flags) => (await import('../watch/show-events.ts')).showEvents(flags))

  serverCommand(program, 'query [dir] [sql]', 'query the published tables in SQL (DuckDB)')
    .option('--tenant <name>', 'tenant, if the folder has several')
    .option('--workspace <name>', 'workspace, if the tenant has several')
    .usage('[options] [dir] <sql>')
    .addOption(new Option('--csv', 'print CSV').conflicts('json'))
    .addHelpText(
      'after',
      `
Without a folder, queries the state of the project. Events that are not published yet are missing.
${examples(
  'servo query "show tables"',
  'servo query "select state, count(*) from tasks group by state"',
  'servo query /backup/.servo "select * from runs" --csv',
)}`,
    )
    .action(async (dir: string | undefined, sql: string | undefined, flags) =>
      (await import('../commands/query.ts')).queryCommand(dir, sql, flags),
    )

  command('verify [dir]', 'check all checksums, and prove that the tables follow from the ledger')
    .option('--quick', 'do not replay the ledger')
    .option('--data', 'check the stored values too')
    .action(async (dir: string | undefined, flags) => (await import('../commands/verify.ts')).verifyCommand(dir, flags))

  command('rebuild [dir]', 'rebuild the tables from the ledger')
    .option('--accept-loss', 'fold what is left of the ledger, though sound tables have rows of segments that are lost')
    .action(async (dir: string | undefined, flags) => (await import('../commands/rebuild.ts')).rebuildCommand(dir, flags))

  command('backup <dir>', 'back up the project, running or not, to a folder')
    .option('--prune', 'also remove the files of removed values, and logs that the project no longer has')
    .option('--no-verify', 'do not check the files of the backup')
    .addHelpText(
      'after',
      `
Copies only what the folder does not have yet. The folder also holds the secrets of the project: keep it as safe.
${examples('servo backup /backups/shop')}`,
    )
    .action(async (dir: string, flags) => (await import('../commands/backup.ts')).backupCommand(dir, flags))

  projectCommand(program, 'restore <dir>', 'restore a backup into a project without state, with automation paused')
    .addHelpText('after', examples('servo restore /backups/shop'))
    .action(async (dir: string, flags) => (await import('../commands/backup.ts')).restoreCommand(dir, flags))

  serverCommand(program, 'gc', 'remove stored values that `keep` does not keep; asks first')
    .option('--dry-run', 'only show what would be removed')
    .option('--yes', 'do not ask; required without a terminal')
    .action(async (flags) => (await import('../commands/retention.ts')).gcCommand(flags))

  command('attach [dir]', 'write attach.sql, which opens the tables in the DuckDB command line').action(
    async (dir: string | undefined, flags) => (await import('../commands/attach.ts')).attachCommand(dir, flags),
  )
}

/** The commands about cron expressions, which need neither a project nor a server. */
export function cronCommands(program: Command): void {
  program.commandsGroup('Write schedules:')

  const cron = program.command('cron').description('explain cron expressions, list their next ticks').helpCommand(false)

  const command = (usage: string, description: string): Command =>
    printsJson(cron.command(usage).description(description)).option(
      '--timezone <zone>',
      'IANA name of the time zone, such as Europe/Paris (default: UTC)',
    )

  command('next <expression...>', 'list the next ticks of one or more expressions')
    .option('--from <moment>', 'ticks after this time, such as 2025-01-15T10:00 in the time zone (default: now)')
    .option('--count <number>', 'how many, from 1 to 1000', '5')
    .addHelpText(
      'after',
      examples(
        'servo cron next "0 6 * * MON-FRI" --timezone Europe/Paris',
        'servo cron next "0 6 * * MON-FRI" "0 9 * * SAT,SUN" --count 7',
      ),
    )
    .action(async (expressions: string[], flags) =>
      (await import('../commands/cron.ts')).nextTicks(expressions, flags, new Date()),
    )

  command('explain <expression...>', 'say in words when an expression ticks, and what clock changes do to it')
    .addHelpText('after', examples('servo cron explain "30 2 * * L5" --timezone America/New_York'))
    .action(async (expressions: string[], flags) =>
      (await import('../commands/cron.ts')).explainCron(expressions, flags, new Date()),
    )
}
