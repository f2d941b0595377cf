import { type Command, Option } from 'commander'
import { examples, projectCommand, several } from './command-parts.ts'

/** Schedules, and all automation at once. */
export function automationCommands(program: Command): void {
  const schedules = program
    .command('schedules')
    .alias('schedule')
    .description('when assets run by themselves: look, pause, trigger')
    .helpCommand(false)

  projectCommand(schedules, 'list', 'all schedules, when each ticks next and what came of its last tick')
    .option('--limit <number>', 'how many', '50')
    .option('--cursor <cursor>', 'go on where a page ended')
    .action(async (flags) => (await import('./commands/schedules.ts')).listSchedules(flags))

  projectCommand(schedules, 'show <schedule>', 'everything known of a schedule').action(async (name: string, flags) =>
    (await import('./commands/schedules.ts')).showSchedule(name, flags),
  )

  projectCommand(schedules, 'ticks <schedule>', 'its ticks, the newest first: triggered, or skipped or failed and why')
    .option('--status <status>', 'only those that were triggered, skipped or failed')
    .option('--since <moment>', 'only those at or after it')
    .option('--until <moment>', 'only those before it')
    .option('--limit <number>', 'how many', '50')
    .option('--cursor <cursor>', 'go on where a page ended')
    .action(async (name: string, flags) => (await import('./commands/schedules.ts')).listTicks(name, flags))

  for (const change of ['pause', 'resume'] as const) {
    const description = change === 'pause' ? 'let a schedule skip its ticks' : 'let a schedule tick again'
    projectCommand(schedules, `${change} <schedule...>`, description)
      .option('--reason <text>', 'why, for the record')
      .option('--key <key>', 'name of the request: the same key asked for again is the same request')
      .action(async (names: string[], flags) => (await import('./commands/schedules.ts')).switchSchedules(change, names, flags))
  }

  projectCommand(schedules, 'trigger <schedule>', 'run what a schedule runs, now; its next tick comes as before')
    .option('--key <key>', 'name of the request: the same key asked for again is the same run')
    .action(async (name: string, flags) => (await import('./commands/schedules.ts')).triggerSchedule(name, flags))

  /** What a schedule that is not declared in code is made of. */
  const scheduleOptions = (command: Command): Command =>
    command
      .option('--cron <expression>', 'when it ticks; may be repeated', several)
      .option('--timezone <zone>', 'zone in which that is read, such as Europe/Paris')
      .option('--select <selection>', 'what each tick runs; may be repeated', several)
      .option('--partition <key>', 'partition that each tick runs; may be repeated', several)
      .option('--offset <number>', 'how many windows before the one that has just closed')
      .option('--catchup-window-minutes <number>', 'how old a missed tick may be and still run')
      .option('--max-catchup <number>', 'how many missed ticks run at most')
      .option('--overlap <policy>', 'while an earlier run is unfinished: queue, skip or replace')
      .option('--label <name=value>', 'label of its runs; may be repeated', several)
      .option('--priority <number>', 'runs with a higher number start first')
      .option('--pause-after <number>', 'pause it when so many runs in a row failed')
      .option('--description <text>', 'what it is for')
      .option('--key <key>', 'name of the request: the same key asked for again is the same request')

  scheduleOptions(projectCommand(schedules, 'create <schedule>', 'make a schedule without code'))
    .addHelpText(
      'after',
      examples("servo schedules create nightly --cron '0 5 * * *' --timezone Europe/Paris --select mart/revenue"),
    )
    .action(async (name: string, flags) => (await import('./commands/schedules.ts')).createSchedule(name, flags))

  scheduleOptions(projectCommand(schedules, 'update <schedule>', 'change a schedule that was made without code'))
    .option('--name <name>', 'another name; its history stays with it')
    .addOption(new Option('--enable', 'let it tick'))
    .addOption(new Option('--no-enable', 'turn it off'))
    .action(async (name: string, flags) => (await import('./commands/schedules.ts')).updateSchedule(name, flags))

  projectCommand(schedules, 'delete <schedule>', 'delete a schedule that was made without code; its history stays')
    .option('--key <key>', 'name of the request: the same key asked for again is the same request')
    .action(async (name: string, flags) => (await import('./commands/schedules.ts')).deleteSchedule(name, flags))

  whyCommands(program)

  const automation = program
    .command('automation')
    .description('all schedules at once: pause, resume, or see which')
    .helpCommand(false)

  projectCommand(automation, 'status', 'whether schedules tick').action(async (flags) =>
    (await import('./commands/schedules.ts')).showAutomation(flags),
  )

  for (const change of ['pause', 'resume'] as const) {
    projectCommand(automation, change, change === 'pause' ? 'let nothing tick' : 'let everything tick again')
      .option('--reason <text>', 'why, for the record')
      .option('--key <key>', 'name of the request: the same key asked for again is the same request')
      .action(async (flags) => (await import('./commands/schedules.ts')).switchAllAutomation(change, flags))
  }
}

/** Why something ran or did not, and who asked for different things under one name. */
function whyCommands(program: Command): void {
  const why = program.command('why').description('why something ran, or did not').helpCommand(false)

  projectCommand(why, 'schedule <schedule>', 'what a schedule did when it was last due, or at a moment, and why')
    .option('--at <moment>', 'such as 05:00 or 2025-01-15T05:00 in the zone of the schedule')
    .addHelpText('after', examples('servo why schedule nightly', 'servo why schedule nightly --at 05:00'))
    .action(async (name: string, flags) => (await import('./commands/why.ts')).showReasons('schedule', name, flags))

  projectCommand(why, 'sensor <sensor>', 'what came of the last evaluations of a sensor, or of a message to it')
    .option('--message <id>', 'what became of this message')
    .action(async (name: string, flags) => (await import('./commands/why.ts')).showReasons('sensor', name, flags))

  projectCommand(why, 'run <run>', 'who asked for a run, and why it waits or ended as it did').action(
    async (run: string, flags) => (await import('./commands/why.ts')).showReasons('run', run, flags),
  )

  projectCommand(why, 'asset <asset>', 'the run that made it and who asked for that, and what would run it again')
    .option('--partition <key>', 'only this partition')
    .addHelpText('after', examples('servo why asset mart/revenue --partition 2025-09-03'))
    .action(async (asset: string, flags) => (await import('./commands/why.ts')).showReasons('asset', asset, flags))

  projectCommand(program, 'conflicts', 'different requests under one run key, or bodies under one message id')
    .option('--since <moment>', 'only those at or after it')
    .option('--until <moment>', 'only those before it')
    .option('--limit <number>', 'how many', '50')
    .option('--cursor <cursor>', 'go on where a page ended')
    .action(async (flags) => (await import('./commands/why.ts')).listAllConflicts(flags))
}
