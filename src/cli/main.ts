import { readFileSync } from 'node:fs'
import { Command, CommanderError, Option } from 'commander'
import { alertCommands } from './arguments/alert-commands.ts'
import { assetCommands } from './arguments/asset-commands.ts'
import { automationCommands } from './arguments/automation-commands.ts'
import { beginCommands } from './arguments/begin-commands.ts'
import { unlessExpanded } from './arguments/expanded.ts'
import { partitionCommands } from './arguments/partition-commands.ts'
import { runCommands } from './arguments/run-commands.ts'
import { shellCommands } from './arguments/shell-commands.ts'
import { cronCommands, stateCommands } from './arguments/state-commands.ts'
import { tokenCommands } from './arguments/token-commands.ts'
import { wrongUse } from './arguments/wrong-use.ts'
import { chosenFields, commandIn, joinFields } from './json/chosen-fields.ts'
import { colours, echoShortly, fail, speakJson, speaksJson, watchOutput } from './output.ts'

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }

/** Runs one command, and sets the exit code of the process. */
export async function main(args: readonly string[]): Promise<void> {
  speakJson(asksForJson(args))
  watchOutput()
  echoShortly(args)
  const program = commands()
  try {
    await program.parseAsync(joinFields(program, args), { from: 'user' })
  } catch (error) {
    const expanded = (refused: unknown): unknown => unlessExpanded(commandIn(program, args), args, refused)
    if (!(error instanceof CommanderError)) fail(expanded(error))
    // Help and the version are not errors.
    else if (error.exitCode === 0) process.exitCode = 0
    else if (error.code === 'commander.help' && !asksForJson(args)) process.exitCode = 2
    else fail(expanded(wrongUse(program, args, error)))
  }
}

/** True if `--json` is among the arguments, not behind `--`, where it would be a name. A mistake in them is told before they are understood. */
function asksForJson(args: readonly string[]): boolean {
  const end = args.indexOf('--')
  return args.slice(0, end < 0 ? undefined : end).some((word) => word === '--json' || word.startsWith('--json='))
}

/** Every command, with its arguments and options. Each is loaded when it is run, so that --help starts as fast as Node does. */
export function commands(): Command {
  const program = new Command('servo')
    .description('A data-asset orchestrator whose state is a ledger and Parquet tables.')
    .version(version, '-V, --version', 'print the version')
    .addOption(new Option('-v').hideHelp())
    .on('option:v', () => {
      process.stdout.write(`${version}\n`)
      throw new CommanderError(0, 'commander.version', version)
    })
    .helpOption('-h, --help', 'print help')
    .helpCommand(false)
    .configureHelp({ styleTitle: (title) => colours.bold(title) })
    // Mistakes are printed as all other errors are.
    .configureOutput({
      outputError: () => undefined,
      writeErr: (text) => {
        if (!speaksJson()) process.stderr.write(text)
      },
    })
    .exitOverride()
    .hook('preAction', (_, command) => {
      const json: unknown = command.opts()['json']
      if (json === undefined) return
      speakJson(true, chosenFields(command, json))
      command.setOptionValue('json', true)
    })
    .addHelpText(
      'after',
      `
servo <command> --help prints the help of a command.
Exit codes: 0 success, 1 a run or a check failed, 2 wrong use, 3 something is unavailable, 4 a bug in Servo.`,
    )
  beginCommands(program)
  runCommands(program)
  assetCommands(program)
  partitionCommands(program)
  automationCommands(program)
  alertCommands(program)
  tokenCommands(program)
  stateCommands(program)
  cronCommands(program)
  shellCommands(program)
  return program
}
