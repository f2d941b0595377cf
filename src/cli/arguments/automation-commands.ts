import { type Command, Option } from 'commander'
import { backfillCommands } from './backfill-commands.ts'
import { between, examples, keyedBy, oneOfOption, pagedBy, serverCommand, several } from './command-parts.ts'
import { sensorCommands } from './sensor-commands.ts'

const schedulesOf = () => import('../commands/schedules.ts')
const whyOf = () => import('../commands/why.ts')

/** Schedules, sensors, all automation at once, and why something ran. */
export function automationCommands(program: Command): void {
  program.commandsGroup('Automate:')
  scheduleCommands(program)
  sensorCommands(program)
  backfillCommands(program)
  whyCommands(program)
  switchCommands(program)
}

function scheduleCommands(program: Command): void {
  const schedules = program
    .command('schedules')
    .alias('schedule')
    .description('list schedules, pause them, trigger them')
    .helpCommand(false)

  pagedBy(serverCommand(schedules, 'list', 'list schedules with their next tick, last tick and last run'))
    .addOption(oneOfOption('--status <status>', 'only schedules with this status', ['active', 'paused', 'disabled', 'ended']))
    .action(async (flags) => (await schedulesOf()).listSchedules(flags))

  serverCommand(schedules, 'show <schedule>', 'show everything about a schedule').action(async (name: string, flags) =>
    (await schedulesOf()).showSchedule(name, flags),
  )

  between(
    pagedBy(serverCommand(schedules, 'ticks [schedule]', 'list ticks of one schedule or of all, newest first')).addOption(
      oneOfOption('--status <status>', 'only ticks with this status', ['triggered', 'skipped', 'failed']),
    ),
    'ticks',
  )
    .addHelpText(
      'after',
      examples('servo schedules ticks nightly', 'servo schedules ticks --status skipped --since 2025-01-15'),
    )
    .action(async (name: string | undefined, flags) => (await import('../commands/ticks.ts')).listTicks(name, flags))

  const switches = {
    pause: 'pause schedules: they skip their ticks',
    resume: 'resume paused schedules',
  }
  for (const change of ['pause', 'resume'] as const)
    keyedBy(
      serverCommand(schedules, `${change} <schedule...>`, switches[change]).option('--reason <text>', 'why, for the record'),
    ).action(async (names: string[], flags) => (await schedulesOf()).switchSchedules(change, names, flags))

  keyedBy(
    serverCommand(schedules, 'trigger <schedule>', 'run what a schedule runs, now, even if it is paused or disabled')
      .option('--partition <key>', 'run this partition or range instead of its own; may be repeated', several)
      .option('--at <moment>', 'run what it would have run then: 05:00 or 2025-01-15T05:00 in its time zone'),
    'run',
  )
    .addHelpText('after', examples('servo schedules trigger nightly', 'servo schedules trigger nightly --at 2025-01-15T05:00'))
    .action(async (name: string, flags) =>
      (await import('../commands/asked-ticks.ts')).triggerSchedule(name, flags, new Date()),
    )

  serverCommand(schedules, 'catchup <schedule> [moments...]', 'run ticks that were missed or skipped')
    .option('--from <moment>', 'run all ticks from this time, in the time zone of the schedule')
    .option('--to <moment>', 'run ticks up to this time; a date means the whole day (default: now)')
    .option('--dry-run', 'show which ticks would run, and run nothing')
    .addHelpText(
      'after',
      examples(
        'servo schedules catchup nightly 2025-01-15T05:00',
        'servo schedules catchup nightly --from 2025-01-10 --to 2025-01-15 --dry-run',
      ),
    )
    .action(async (name: string, moments: string[], flags) =>
      (await import('../commands/asked-ticks.ts')).catchUpSchedule(name, moments, flags, new Date()),
    )

  /** What a schedule that is not declared in code is made of. */
  const scheduleOptions = (command: Command): Command =>
    keyedBy(
      command
        .option('--cron <expression>', 'when it ticks; may be repeated', several)
        .option('--timezone <zone>', 'time zone of the cron expressions, such as Europe/Paris')
        .option('--select <selection>', 'assets that each tick runs; may be repeated', several)
        .option('--partition <key>', 'partition that each tick runs; may be repeated', several)
        .option('--offset <number>', 'run the window this many before the one that just closed')
        .option('--catchup-window-minutes <number>', 'how old a missed tick may be and still run')
        .option('--max-catchup <number>', 'how many missed ticks run at most')
        .addOption(
          oneOfOption('--overlap <policy>', 'what to do if an earlier run is unfinished', ['queue', 'skip', 'replace']),
        )
        .option('--label <name=value>', 'label of its runs; may be repeated', several)
        .option('--priority <number>', 'runs with a higher number start first, from -1000 to 1000')
        .option('--pause-after <number>', 'pause it after this many failed runs in a row')
        .option('--description <text>', 'what it is for'),
    )

  scheduleOptions(serverCommand(schedules, 'create <schedule>', 'create a schedule without code'))
    .addHelpText(
      'after',
      examples("servo schedules create nightly --cron '0 5 * * *' --timezone Europe/Paris --select mart/revenue"),
    )
    .action(async (name: string, flags) => (await schedulesOf()).createSchedule(name, flags))

  scheduleOptions(serverCommand(schedules, 'update <schedule>', 'change a schedule that was created without code'))
    .option('--name <name>', 'rename it; its history stays')
    .addOption(new Option('--enable', 'let it tick'))
    .addOption(new Option('--no-enable', 'turn it off'))
    .action(async (name: string, flags) => (await schedulesOf()).updateSchedule(name, flags))

  keyedBy(
    serverCommand(schedules, 'delete <schedule>', 'delete a schedule that was created without code; its history stays'),
  ).action(async (name: string, flags) => (await schedulesOf()).deleteSchedule(name, flags))
}

function switchCommands(program: Command): void {
  const automation = program
    .command('automation')
    .description('pause and resume all schedules and sensors at once')
    .helpCommand(false)

  serverCommand(automation, 'status', 'say whether schedules tick and sensors are evaluated').action(async (flags) =>
    (await schedulesOf()).showAutomation(flags),
  )

  const switches = {
    pause: 'pause all schedules and sensors',
    resume: 'resume schedules and sensors; those paused one by one stay paused',
  }
  for (const change of ['pause', 'resume'] as const)
    keyedBy(serverCommand(automation, change, switches[change]).option('--reason <text>', 'why, for the record')).action(
      async (flags) => (await schedulesOf()).switchAllAutomation(change, flags),
    )
}

/** Why something ran or did not, and which requests contradict each other. */
function whyCommands(program: Command): void {
  const why = program.command('why').description('explain why something ran, or did not').helpCommand(false)

  serverCommand(why, 'schedule <schedule>', 'explain the last tick of a schedule, or one at a given time')
    .option('--at <moment>', 'time of the tick: 05:00 or 2025-01-15T05:00 in the time zone of the schedule')
    .addHelpText('after', examples('servo why schedule nightly', 'servo why schedule nightly --at 05:00'))
    .action(async (name: string, flags) => (await whyOf()).showReasons('schedule', name, flags))

  serverCommand(why, 'sensor <sensor>', 'explain the last evaluations of a sensor, or what became of a message')
    .option('--message <id>', 'explain what became of this message')
    .action(async (name: string, flags) => (await whyOf()).showReasons('sensor', name, flags))

  serverCommand(why, 'backfill <backfill>', 'explain why a backfill waits, or ended as it did').action(
    async (id: string, flags) => (await whyOf()).showReasons('backfill', id, flags),
  )

  serverCommand(why, 'run <run>', 'explain who asked for a run, and why it waits or ended as it did').action(
    async (run: string, flags) => (await whyOf()).showReasons('run', run, flags),
  )

  serverCommand(why, 'asset <asset>', 'explain which run made an asset, and what would run it again')
    .option('--partition <key>', 'only this partition')
    .addHelpText('after', examples('servo why asset mart/revenue --partition 2025-09-03'))
    .action(async (asset: string, flags) => (await whyOf()).showReasons('asset', asset, flags))

  between(
    pagedBy(serverCommand(program, 'conflicts', 'list different requests that used the same run key or message id')),
    'conflicts found',
  ).action(async (flags) => (await whyOf()).listAllConflicts(flags))
}
