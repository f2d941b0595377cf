import { type Command, Option } from 'commander'
import { examples, projectCommand, several } from './command-parts.ts'

const AUTOMATION_CHANGES = {
  pause: 'let no schedule tick and evaluate no sensor',
  resume: 'let schedules tick and sensors be evaluated again',
}

/** Schedules, sensors, and all automation at once. */
export function automationCommands(program: Command): void {
  const schedules = program
    .command('schedules')
    .alias('schedule')
    .description('when assets run by themselves: look, pause, trigger')
    .helpCommand(false)

  projectCommand(schedules, 'list', 'all schedules: their next tick, last tick and last run')
    .option('--limit <number>', 'how many', '50')
    .option('--cursor <cursor>', 'go on where a page ended')
    .action(async (flags) => (await import('../commands/schedules.ts')).listSchedules(flags))

  projectCommand(schedules, 'show <schedule>', 'everything known of a schedule').action(async (name: string, flags) =>
    (await import('../commands/schedules.ts')).showSchedule(name, flags),
  )

  projectCommand(schedules, 'ticks [schedule]', 'ticks of one schedule or of all, the newest first, and why')
    .option('--status <status>', 'only those that were triggered, skipped or failed')
    .option('--since <moment>', 'only those at or after it')
    .option('--until <moment>', 'only those before it')
    .option('--limit <number>', 'how many', '50')
    .option('--cursor <cursor>', 'go on where a page ended')
    .addHelpText(
      'after',
      examples('servo schedules ticks nightly', 'servo schedules ticks --status skipped --since 2025-01-15'),
    )
    .action(async (name: string | undefined, flags) => (await import('../commands/ticks.ts')).listTicks(name, flags))

  for (const change of ['pause', 'resume'] as const) {
    const description = change === 'pause' ? 'let a schedule skip its ticks' : 'let a schedule tick again'
    projectCommand(schedules, `${change} <schedule...>`, description)
      .option('--reason <text>', 'why, for the record')
      .option('--key <key>', 'name of the request: the same key asked for again is the same request')
      .action(async (names: string[], flags) =>
        (await import('../commands/schedules.ts')).switchSchedules(change, names, flags),
      )
  }

  projectCommand(schedules, 'trigger <schedule>', 'run what a schedule runs, now, even if it is paused or disabled')
    .option('--partition <key>', 'run this partition or range instead of its own; may be repeated', several)
    .option('--at <moment>', 'run what it would have run then, such as 05:00 or 2025-01-15T05:00 in its zone')
    .option('--key <key>', 'name of the request: the same key asked for again is the same run')
    .addHelpText('after', examples('servo schedules trigger nightly', 'servo schedules trigger nightly --at 2025-01-15T05:00'))
    .action(async (name: string, flags) =>
      (await import('../commands/asked-ticks.ts')).triggerSchedule(name, flags, new Date()),
    )

  projectCommand(schedules, 'catchup <schedule> [moments...]', 'run ticks that were missed or skipped')
    .option('--from <moment>', 'all ticks from here, in the zone of the schedule')
    .option('--to <moment>', 'to here; a day is meant as a whole (default: now)')
    .option('--dry-run', 'show which ticks would run and which are refused, and request nothing')
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
    .action(async (name: string, flags) => (await import('../commands/schedules.ts')).createSchedule(name, flags))

  scheduleOptions(projectCommand(schedules, 'update <schedule>', 'change a schedule that was made without code'))
    .option('--name <name>', 'another name; its history stays with it')
    .addOption(new Option('--enable', 'let it tick'))
    .addOption(new Option('--no-enable', 'turn it off'))
    .action(async (name: string, flags) => (await import('../commands/schedules.ts')).updateSchedule(name, flags))

  projectCommand(schedules, 'delete <schedule>', 'delete a schedule that was made without code; its history stays')
    .option('--key <key>', 'name of the request: the same key asked for again is the same request')
    .action(async (name: string, flags) => (await import('../commands/schedules.ts')).deleteSchedule(name, flags))

  sensorCommands(program)
  whyCommands(program)

  const automation = program
    .command('automation')
    .description('all schedules and sensors at once: pause, resume, or see which')
    .helpCommand(false)

  projectCommand(automation, 'status', 'whether schedules tick and sensors are evaluated').action(async (flags) =>
    (await import('../commands/schedules.ts')).showAutomation(flags),
  )

  for (const change of ['pause', 'resume'] as const) {
    projectCommand(automation, change, AUTOMATION_CHANGES[change])
      .option('--reason <text>', 'why, for the record')
      .option('--key <key>', 'name of the request: the same key asked for again is the same request')
      .action(async (flags) => (await import('../commands/schedules.ts')).switchAllAutomation(change, flags))
  }
}

function sensorCommands(program: Command): void {
  const sensors = program
    .command('sensors')
    .alias('sensor')
    .description('react to events and request runs: list, pause, send, replay')
    .helpCommand(false)
  const commands = () => import('../commands/sensors.ts')
  const paged = (command: Command): Command =>
    command.option('--limit <number>', 'how many', '50').option('--cursor <cursor>', 'go on where a page ended')
  const spanned = (command: Command): Command =>
    paged(command).option('--since <moment>', 'only those at or after it').option('--until <moment>', 'only those before it')
  const keyed = (command: Command): Command =>
    command.option('--key <key>', 'name of the request: the same key asked for again is the same request')
  const switched = (command: Command): Command =>
    keyed(command)
      .option('--reason <text>', 'why, for the record')
      .option('--expect-version <number>', 'only if its state version is still this one')

  paged(projectCommand(sensors, 'list', 'all sensors, when each was last evaluated, and what is wrong')).action(async (flags) =>
    (await commands()).listSensors(flags),
  )

  projectCommand(sensors, 'show <sensor>', 'everything known of a sensor, its last error in full').action(
    async (name: string, flags) => (await commands()).showSensor(name, flags),
  )

  spanned(projectCommand(sensors, 'evals <sensor>', 'its evaluations, the newest first, and the runs they asked for'))
    .option('--status <status>', 'only triggered, no_new_data, error, skipped_stale_cursor or skipped_duplicate')
    .action(async (name: string, flags) => (await commands()).listEvals(name, flags))

  for (const change of ['pause', 'resume'] as const) {
    const description = change === 'pause' ? 'stop evaluating a sensor' : 'evaluate a sensor again, and forget its errors'
    switched(projectCommand(sensors, `${change} <sensor...>`, description)).action(async (names: string[], flags) =>
      (await commands()).switchSensors(change, names, flags),
    )
  }

  switched(projectCommand(sensors, 'reset-cursor <sensor>', 'set the cursor that the next poll gets, or clear it'))
    .option('--to <json>', 'the cursor as JSON (default: null, as at the first poll)')
    .action(async (name: string, flags) => (await commands()).resetCursor(name, flags))

  spanned(projectCommand(sensors, 'dead-letters <sensor>', 'messages that failed too often, the newest first'))
    .option('--all', 'also those that failed and have tries left')
    .action(async (name: string, flags) => (await commands()).listDeadLetters(name, flags))

  const message = (command: Command): Command =>
    keyed(command)
      .option('--data <json>', 'content of the message: JSON, @file, or - for standard input')
      .option('--attribute <name=value>', 'attribute of the message; may be repeated', several)

  message(
    projectCommand(sensors, 'replay <sensor> <message>', 'retry a dead letter; with --data, any message that failed, at once'),
  ).action(async (name: string, id: string, flags) => (await commands()).replayDeadLetter(name, id, flags))

  keyed(projectCommand(sensors, 'evaluate <sensor>', 'poll a sensor now, ahead of its time'))
    .option('--dry-run', 'show what it would ask for, and record nothing')
    .action(async (name: string, flags) => (await commands()).evaluateSensor(name, flags))

  message(projectCommand(sensors, 'send <sensor>', 'send a message to a sensor, as its sender would'))
    .option('--id <id>', 'id of the message: one that was accepted is not evaluated again')
    .option('--dry-run', 'show what it would ask for, and record nothing')
    .addHelpText('after', examples(`servo sensors send orders-in --data '{"order": {"id": 7}}' --dry-run`))
    .action(async (name: string, flags) => (await commands()).sendMessage(name, flags))

  /** What a sensor that is not declared in code is made of. */
  const sensorOptions = (command: Command): Command =>
    keyed(command)
      .option('--webhook <path>', 'receive messages by HTTP at this path')
      .option('--verify <way>', 'how senders show who they are: standard, github, token or none')
      .option('--secret <name>', 'environment variable of the server with their secret; may be repeated', several)
      .option('--topic <topic>', 'receive messages pushed by Pub/Sub')
      .option('--audience <audience>', 'what the token of a push must be meant for')
      .option('--service-account <email>', 'who may push')
      .option('--watch <selection>', 'watch these assets; may be repeated', several)
      .option('--on <happening>', 'materialized or check_failed; may be repeated', several)
      .option('--run-state <state>', 'watch runs that end as succeeded, failed or cancelled; may be repeated', several)
      .option('--select <selection>', 'what it runs; may be repeated', several)
      .option('--partition-at <pointer>', 'where in the message the partition is, such as /order/date')
      .option('--key-at <pointer>', 'where the key of the run is: each key has one run')
      .option('--max-tries <number>', 'after so many failed tries a message is a dead letter')
      .option('--description <text>', 'what it is for')

  sensorOptions(projectCommand(sensors, 'create <sensor>', 'make a sensor without code'))
    .addHelpText(
      'after',
      examples('servo sensors create orders-in --webhook orders --verify github --secret SHOP_SECRET --select orders'),
    )
    .action(async (name: string, flags) => (await commands()).createSensor(name, flags))

  sensorOptions(projectCommand(sensors, 'update <sensor>', 'change a sensor that was made without code'))
    .option('--name <name>', 'another name; its history stays with it')
    .addOption(new Option('--enable', 'evaluate it'))
    .addOption(new Option('--no-enable', 'turn it off'))
    .addHelpText('after', examples('servo sensors update orders-in --secret SHOP_SECRET_2 --secret SHOP_SECRET'))
    .action(async (name: string, flags) => (await commands()).updateSensor(name, flags))

  keyed(projectCommand(sensors, 'delete <sensor>', 'delete a sensor that was made without code; its history stays')).action(
    async (name: string, flags) => (await commands()).deleteSensor(name, flags),
  )
}

/** Why something ran or did not, and who asked for different things under one name. */
function whyCommands(program: Command): void {
  const why = program.command('why').description('why something ran, or did not').helpCommand(false)

  projectCommand(why, 'schedule <schedule>', 'what a schedule did when it was last due, or at a moment, and why')
    .option('--at <moment>', 'such as 05:00 or 2025-01-15T05:00 in the zone of the schedule')
    .addHelpText('after', examples('servo why schedule nightly', 'servo why schedule nightly --at 05:00'))
    .action(async (name: string, flags) => (await import('../commands/why.ts')).showReasons('schedule', name, flags))

  projectCommand(why, 'sensor <sensor>', 'what came of the last evaluations of a sensor, or of a message to it')
    .option('--message <id>', 'what became of this message')
    .action(async (name: string, flags) => (await import('../commands/why.ts')).showReasons('sensor', name, flags))

  projectCommand(why, 'run <run>', 'who asked for a run, and why it waits or ended as it did').action(
    async (run: string, flags) => (await import('../commands/why.ts')).showReasons('run', run, flags),
  )

  projectCommand(why, 'asset <asset>', 'the run that made it and who asked for that, and what would run it again')
    .option('--partition <key>', 'only this partition')
    .addHelpText('after', examples('servo why asset mart/revenue --partition 2025-09-03'))
    .action(async (asset: string, flags) => (await import('../commands/why.ts')).showReasons('asset', asset, flags))

  projectCommand(program, 'conflicts', 'different requests under one run key, or bodies under one message id')
    .option('--since <moment>', 'only those at or after it')
    .option('--until <moment>', 'only those before it')
    .option('--limit <number>', 'how many', '50')
    .option('--cursor <cursor>', 'go on where a page ended')
    .action(async (flags) => (await import('../commands/why.ts')).listAllConflicts(flags))
}
