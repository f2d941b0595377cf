import path from 'node:path'
import type { AttemptResultInput, DispatchEnvelope } from '../../contract/dispatch.ts'
import type { LogEntry } from '../../contract/pipe.ts'
import type { UlidSource } from '../../lib/ulid.ts'
import { executeAsset } from '../../sdk/attempt/execute.ts'
import { jsonOf } from '../../sdk/attempt/findings.ts'
import { declarationOf } from '../../sdk/declaration.ts'
import type { Log } from '../../sdk/declare/context.ts'
import type { Project } from '../../sdk/project/project.ts'
import { shownFields } from '../../sdk/shown-fields.ts'
import { failedResult } from '../attempt-results.ts'
import { attemptValues } from '../values/attempt-values.ts'
import type { ValueStorage } from '../values/stored-values.ts'
import { evaluateCode } from './evaluation.ts'
import type { AttemptContext, LoadedProject } from './received-work.ts'

export interface ExecutionOptions extends ValueStorage {
  /** Takes secrets out of text. */
  readonly redact?: (text: string) => string
  /** True if there is a secret in the text. */
  readonly hasSecret?: (text: string) => boolean
  readonly now: () => number
  readonly newId: UlidSource
}

/** How a worker executes an envelope: it finds the asset, and runs its body or its program. */
export function projectExecution(project: Project, options: ExecutionOptions): LoadedProject {
  const describing = { root: path.resolve(options.projectDir), ...(options.redact && { redact: options.redact }) }
  const versions = new Map(project.manifest.assets.map(({ asset_key, code_version }) => [asset_key, code_version]))

  async function execute(envelope: DispatchEnvelope, context: AttemptContext): Promise<AttemptResultInput> {
    const begun = performance.now()
    const materializationId = `mat_${options.newId()}`
    const result = await run(envelope, context, materializationId)
    return {
      ...result,
      materialization_id: materializationId,
      code_version: versions.get(envelope.asset_key),
      duration_ms: Math.round((performance.now() - begun) * 1_000) / 1_000,
    }
  }

  async function run(
    envelope: DispatchEnvelope,
    context: AttemptContext,
    materializationId: string,
  ): Promise<AttemptResultInput> {
    const { asset_key, partition } = envelope
    const asset = project.assets.get(asset_key)
    if (asset === undefined)
      return failedResult(
        'invalid',
        `The project no longer declares the asset ${asset_key}. Start the run again with the current code.`,
      )
    const writeLog = (entry: Omit<LogEntry, 'at'>): void => context.log({ at: options.now(), ...entry })
    const store = attemptValues(options, {
      assetKey: asset_key,
      partitionKey: partition?.key,
      materializationId,
      inlineBytes: envelope.payload.inline_bytes ?? undefined,
      hasSecret: options.hasSecret,
    })
    if (declarationOf(asset)?.kind === 'command') {
      // Loaded when first used: most workers run no programs.
      const { executeCommandAsset } = await import('./command-asset.ts')
      const codeVersion = versions.get(asset_key) ?? null
      return executeCommandAsset(asset, { envelope, context, storage: options, store, describing, codeVersion, log: writeLog })
    }
    const { result } = await executeAsset(asset, {
      partition,
      inputs: envelope.payload.inputs,
      signal: context.signal,
      log: logOf(writeLog),
      attempt: envelope.attempt,
      runId: envelope.run_id,
      traceparent: envelope.traceparent ?? undefined,
      store,
      describing,
    })
    return result
  }

  return {
    manifest: project.manifest,
    secretVariables: project.secretVariables,
    describing,
    execute,
    evaluate: (request, context) => evaluateCode(project, request, context, { describing, now: options.now }),
  }
}

/** The text of a line: what is logged may be anything in the code of a user. */
function textOf(text: unknown): string {
  try {
    return String(text)
  } catch {
    return shownFields(text)
  }
}

function logOf(writeLog: (entry: Omit<LogEntry, 'at'>) => void): Log {
  const at =
    (level: NonNullable<LogEntry['level']>): Log['info'] =>
    (text, fields) =>
      writeLog({ stream: 'log', level, text: textOf(text), ...(fields === undefined ? {} : { fields: jsonOf(fields) }) })
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}
