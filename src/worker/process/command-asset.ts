import path from 'node:path'
import type { AttemptResultInput, DispatchEnvelope } from '../../contract/dispatch.ts'
import type { ReportedCheck } from '../../contract/reported-check.ts'
import type { AnyAsset } from '../../sdk/any-asset.ts'
import { failureOf } from '../../sdk/attempt/failure-report.ts'
import { runChecks } from '../../sdk/attempt/findings.ts'
import { keepRows } from '../../sdk/attempt/make.ts'
import { fieldsOf } from '../../sdk/columns.ts'
import { declarationOf, optionsOf } from '../../sdk/declaration.ts'
import type { CommandOptions } from '../../sdk/declare/asset-options.ts'
import type { Checks } from '../../sdk/declare/check.ts'
import type { DataRow, ValueStore, Written } from '../../sdk/declare/values.ts'
import type { DescribingErrors } from '../../sdk/described-error.ts'
import { openPartition, windowText } from '../../sdk/partitions/partition-key.ts'
import type { AnyPartitions } from '../../sdk/partitions/partitions.ts'
import type { StandardSchemaV1 } from '../../sdk/standard-schema.ts'
import { readRowsFile } from '../values/rows-file.ts'
import type { ValueStorage } from '../values/stored-values.ts'
import { type CommandRun, executeCommand } from './command.ts'
import { pipesContext } from './pipes.ts'
import { attemptVariables, inheritedVariables, openProgramFolder } from './program-folder.ts'
import type { AttemptContext } from './received-work.ts'

export interface CommandAttempt {
  readonly envelope: DispatchEnvelope
  readonly context: AttemptContext
  readonly storage: ValueStorage
  readonly store: ValueStore
  readonly describing: Omit<DescribingErrors, 'declared'>
  readonly codeVersion: string | null
  readonly log: CommandRun['log']
}

type AnyCommandOptions = CommandOptions<AnyPartitions, unknown, DataRow>

/** Runs the program of a command: gives it its inputs, and takes over the rows that it hands back. Never throws. */
export async function executeCommandAsset(asset: AnyAsset, attempt: CommandAttempt): Promise<AttemptResultInput> {
  const { envelope, context, storage, codeVersion, log } = attempt
  const { run: words, cwd = '.', env, pipes, partitions, retry, output } = optionsOf<AnyCommandOptions>(asset)
  const { signal, print } = context
  const retryOn = (typeof retry === 'object' ? retry.on : undefined) ?? (() => true)
  const failing = { signal, retryOn, describing: { ...attempt.describing, declared: declarationOf(asset) } }
  try {
    const partition = partitions && envelope.partition ? openPartition(partitions, envelope.partition) : undefined
    const window = partitions && partition && windowText(partitions, partition)
    const folder = await openProgramFolder(asset, envelope.payload.inputs, storage)
    try {
      const hasInputs = Object.keys(folder.inputs).length > 0
      return await executeCommand({
        assetKey: asset.key,
        words: words.map((word) => (typeof word === 'string' ? word : String(word((partition ?? {}) as never)))),
        cwd: path.resolve(storage.projectDir, cwd),
        env: { ...inheritedVariables(process.env), ...env, ...attemptVariables(envelope, window), ...folder.variables },
        pipes,
        context: pipesContext(envelope, codeVersion, window, hasInputs ? { ...folder.inputs } : undefined),
        ...failing,
        print,
        log,
        ...(output && { keepRows: (checks) => keptRows(asset, path.join(folder.output, output), attempt, checks) }),
      })
    } finally {
      await folder.remove()
    }
  } catch (error) {
    return failureOf(error, undefined, failing).result
  }
}

/** Stores the rows as those of a table are stored, and checks them. */
async function keptRows(
  asset: AnyAsset,
  file: string,
  { envelope, context, store, describing, log }: CommandAttempt,
  checks: ReportedCheck[],
): Promise<Written> {
  const { schema, checks: declared = {} } = optionsOf<{ schema?: StandardSchemaV1; checks?: Checks<unknown> }>(asset)
  const { signal } = context
  signal.throwIfAborted()
  const name = path.basename(file)
  const rows = readRowsFile({ path: file, assetKey: asset.key, name, fields: schema && fieldsOf(schema) })
  const { value, written } = await keepRows(asset, rows, name, { partition: envelope.partition, signal, store })
  const warn = (text: string): void => log({ stream: 'log', level: 'warn', text })
  await runChecks(declared, value, signal, checks, { describing: { ...describing, declared: declarationOf(asset) }, warn })
  return written
}
