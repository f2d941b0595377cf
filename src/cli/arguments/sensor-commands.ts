import { type Command, Option } from 'commander'
import { between, examples, keyedBy, oneOfOption, pagedBy, serverCommand, several } from './command-parts.ts'

const commands = () => import('../commands/sensors.ts')

export function sensorCommands(program: Command): void {
  const sensors = program
    .command('sensors')
    .alias('sensor')
    .description('list sensors, pause them, send them messages, replay dead letters')
    .helpCommand(false)
  const listed = (usage: string, description: string): Command => pagedBy(serverCommand(sensors, usage, description))

  listed('list', 'list sensors with their last evaluation and their errors')
    .addOption(oneOfOption('--status <status>', 'only sensors with this status', ['active', 'error', 'paused', 'disabled']))
    .action(async (flags) => (await commands()).listSensors(flags))

  serverCommand(sensors, 'show <sensor>', 'show everything about a sensor, including its last error').action(
    async (name: string, flags) => (await commands()).showSensor(name, flags),
  )

  between(listed('evals <sensor>', 'list evaluations of a sensor and the runs they requested, newest first'), 'evaluations')
    .addOption(
      oneOfOption('--status <status>', 'only evaluations with this status', [
        'triggered',
        'no_new_data',
        'error',
        'skipped_stale_cursor',
        'skipped_duplicate',
      ]),
    )
    .action(async (name: string, flags) => (await commands()).listEvals(name, flags))

  between(listed('dead-letters <sensor>', 'list messages that failed too often, newest first'), 'messages')
    .option('--all', 'include messages that failed and have tries left')
    .action(async (name: string, flags) => (await commands()).listDeadLetters(name, flags))

  changeCommands(sensors)
  messageCommands(sensors)
  definitionCommands(sensors)
}

function changeCommands(sensors: Command): void {
  const switched = (command: Command): Command =>
    keyedBy(command)
      .option('--reason <text>', 'why, for the record')
      .option('--expect-version <number>', 'refuse the change if the state version of the sensor is not this')

  const switches = {
    pause: 'pause sensors: they are not evaluated',
    resume: 'resume paused sensors, and forget their errors',
  }
  for (const change of ['pause', 'resume'] as const)
    switched(serverCommand(sensors, `${change} <sensor...>`, switches[change])).action(async (names: string[], flags) =>
      (await commands()).switchSensors(change, names, flags),
    )

  switched(serverCommand(sensors, 'reset-cursor <sensor>', 'set the cursor of the next poll, or clear it'))
    .option('--to <json>', 'the cursor as JSON (default: null, as for the first poll)')
    .action(async (name: string, flags) => (await commands()).resetCursor(name, flags))
}

function messageCommands(sensors: Command): void {
  const message = (command: Command): Command =>
    keyedBy(command)
      .option('--data <json>', 'content of the message: JSON, @file, or - for standard input')
      .option('--attribute <name=value>', 'attribute of the message; may be repeated', several)

  message(
    serverCommand(sensors, 'replay <sensor> <message>', 'retry a dead letter; with --data, any failed message, at once'),
  ).action(async (name: string, id: string, flags) => (await commands()).replayDeadLetter(name, id, flags))

  keyedBy(serverCommand(sensors, 'evaluate <sensor>', 'poll a sensor now'))
    .option('--dry-run', 'show which runs it would request, and record nothing')
    .action(async (name: string, flags) => (await commands()).evaluateSensor(name, flags))

  message(serverCommand(sensors, 'send <sensor>', 'send a message to a sensor'))
    .option('--id <id>', 'id of the message; an id that was accepted before is not evaluated again')
    .option('--dry-run', 'show which runs it would request, and record nothing')
    .addHelpText('after', examples(`servo sensors send orders-in --data '{"order": {"id": 7}}' --dry-run`))
    .action(async (name: string, flags) => (await commands()).sendMessage(name, flags))
}

function definitionCommands(sensors: Command): void {
  /** What a sensor that is not declared in code is made of. */
  const sensorOptions = (command: Command): Command =>
    keyedBy(command)
      .option('--webhook <path>', 'receive messages by HTTP at this path')
      .addOption(oneOfOption('--verify <way>', 'how senders prove who they are', ['standard', 'github', 'token', 'none']))
      .option('--secret <name>', 'environment variable of the server with the secret; may be repeated', several)
      .option('--topic <topic>', 'receive messages that Pub/Sub pushes')
      .option('--audience <audience>', 'audience that the token of a push must have')
      .option('--service-account <email>', 'service account that may push')
      .option('--watch <selection>', 'watch these assets; may be repeated', several)
      .option('--on <happening>', 'materialized or check_failed; may be repeated', several)
      .option('--run-state <state>', 'watch runs that end as succeeded, failed or cancelled; may be repeated', several)
      .option('--select <selection>', 'assets that it runs; may be repeated', several)
      .option('--partition-at <pointer>', 'JSON pointer to the partition in the message, such as /order/date')
      .option('--key-at <pointer>', 'JSON pointer to the key of the run; each key has one run')
      .option('--max-tries <number>', 'how many tries may fail before a message is a dead letter')
      .option('--description <text>', 'what it is for')

  sensorOptions(serverCommand(sensors, 'create <sensor>', 'create a sensor without code'))
    .addHelpText(
      'after',
      examples('servo sensors create orders-in --webhook orders --verify github --secret SHOP_SECRET --select orders'),
    )
    .action(async (name: string, flags) => (await commands()).createSensor(name, flags))

  sensorOptions(serverCommand(sensors, 'update <sensor>', 'change a sensor that was created without code'))
    .option('--name <name>', 'rename it; its history stays')
    .addOption(new Option('--enable', 'evaluate it'))
    .addOption(new Option('--no-enable', 'turn it off'))
    .addHelpText('after', examples('servo sensors update orders-in --secret SHOP_SECRET_2 --secret SHOP_SECRET'))
    .action(async (name: string, flags) => (await commands()).updateSensor(name, flags))

  keyedBy(serverCommand(sensors, 'delete <sensor>', 'delete a sensor that was created without code; its history stays')).action(
    async (name: string, flags) => (await commands()).deleteSensor(name, flags),
  )
}
