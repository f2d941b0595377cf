import type { AttemptOutput, AttemptResultInput, InputRef } from '../../contract/dispatch.ts'
import type { ReportedCheck } from '../../contract/reported-check.ts'
import type { AnyAsset } from '../any-asset.ts'
import { declarationOf } from '../declaration.ts'
import type { BodySettings, Retry } from '../declare/asset-options.ts'
import type { Checks } from '../declare/check.ts'
import type { Context, Log } from '../declare/context.ts'
import { type AnyResource, OpenResources } from '../declare/resource.ts'
import type { ValueStore } from '../declare/values.ts'
import type { DescribingErrors } from '../described-error.ts'
import { invalid, show } from '../invalid.ts'
import { KeyChanges } from '../partitions/key-changes.ts'
import { openPartition, type PartitionText } from '../partitions/partition-key.ts'
import type { AnyPartitions, DynamicPartitions } from '../partitions/partitions.ts'
import { membersOf } from '../shown-fields.ts'
import { type Failing, failureOf } from './failure-report.ts'
import { checkedMetadata, checkFailure, jsonOf, runChecks } from './findings.ts'
import { loadInputs } from './inputs.ts'
import { makeTable, makeValue } from './make.ts'

/** One attempt at an asset: its inputs, and where to put its value. */
export interface Attempt {
  readonly partition?: PartitionText | null | undefined
  /** Inputs of the dispatch, by their names in the body. */
  readonly inputs: Readonly<Record<string, InputRef>>
  /** Resources that are open already, by their names in the body; the others are opened from the environment. */
  readonly resources?: Readonly<Record<string, unknown>>
  readonly environment?: Readonly<Record<string, string | undefined>>
  /** Aborted with a reason named TimeoutError, the attempt has timed out; with any other reason, it was cancelled. */
  readonly signal: AbortSignal
  readonly log: Log
  readonly attempt: number
  readonly runId: string
  /** W3C trace context of the attempt. */
  readonly traceparent?: string | undefined
  readonly store: ValueStore
  /** How its error is described. */
  readonly describing: Omit<DescribingErrors, 'declared'>
}

export interface ExecutedAttempt {
  /** For the report. Ids, code version and duration are for the caller to add. */
  readonly result: AttemptResultInput
  /** The value; of a table, its readable form. */
  readonly value?: unknown
  /** The thrown error. */
  readonly error?: unknown
}

type BodyOptions = BodySettings<Record<string, AnyAsset>, unknown, Record<string, AnyResource>, unknown> & {
  readonly checks?: Checks<unknown>
}

/** Runs the body of an asset or a table. Never throws: whatever happens is an outcome. Commands are run by the worker itself. */
export async function executeAsset(asset: AnyAsset, attempt: Attempt): Promise<ExecutedAttempt> {
  const declaration = declarationOf(asset)
  const options = declaration?.options as BodyOptions
  const facts: Record<string, unknown> = {}
  const checks: ReportedCheck[] = []
  const reported: { dataVersion?: string } = {}
  const keys = new KeyChanges()
  const failing: Failing = {
    signal: attempt.signal,
    retryOn: retryOf(options),
    describing: { ...attempt.describing, declared: declaration },
  }
  const resources = new OpenResources({
    given: attempt.resources,
    environment: attempt.environment,
    warn: (text) => attempt.log.warn(text),
  })
  try {
    if (declaration?.kind !== 'asset' && declaration?.kind !== 'table')
      throw invalid('no_body', `${declaration?.name ?? show(asset)} has no body to run`, 'Run an asset or a table.')
    const inputs = await loadInputs(asset, options.inputs ?? {}, attempt)
    const given = { ...inputs, ...(await contextOf(asset.key, options, attempt, { facts, keys, resources, reported })) }
    // An aborted signal does not fire again: a body that listens from now on would wait for ever.
    attempt.signal.throwIfAborted()
    const made = declaration.kind === 'table' ? await makeTable(asset, given, attempt) : await makeValue(asset, given, attempt)
    const metadata = await checkedMetadata(asset.key, options.metadata, facts)
    const throwing = { describing: failing.describing, warn: (text: string) => attempt.log.warn(text) }
    await runChecks(options.checks ?? {}, made.value, attempt.signal, checks, throwing)
    const error = checkFailure(asset.key, checks)
    // A value that did not pass is no asset's value: whoever looks into the failure finds it in a file.
    const isHeld = error !== undefined && made.written?.value !== undefined
    const written = isHeld ? await attempt.store.writeJson(made.written.value, 'file') : made.written
    const { path, value, bytes, sha256, rows, dataVersion } = { ...written, ...reported }
    const output: AttemptOutput = { path, value, bytes, sha256, rows, data_version: dataVersion, metadata, checks }
    if (error === undefined) return { result: { outcome: 'SUCCEEDED', output, ...keys.reported() }, value: made.value }
    return { ...failureOf(error, output, failing), value: made.value }
  } catch (error) {
    return failureOf(error, { metadata: jsonOf(facts), checks }, failing)
  } finally {
    await resources.close()
  }
}

const retryOf = (options: { retry?: Retry } | undefined): ((error: unknown) => boolean) =>
  (typeof options?.retry === 'object' ? options.retry.on : undefined) ?? (() => true)

/** The effects of a body besides its value. */
interface Left {
  readonly facts: Record<string, unknown>
  readonly keys: KeyChanges
  readonly resources: OpenResources
  readonly reported: { dataVersion?: string }
}

/** As long as an id may be. */
const MAX_VERSION = 512

function checkedVersion(key: string, version: unknown): string {
  if (typeof version === 'string' && version !== '' && version.length <= MAX_VERSION) return version
  throw invalid(
    'bad_data_version',
    `${key} reported ${show(version)} as its data version`,
    `Pass dataVersion() a string of 1 to ${MAX_VERSION} characters, such as a hash of the data.`,
  )
}

async function contextOf(
  key: string,
  options: BodyOptions,
  attempt: Attempt,
  { facts, keys, resources, reported }: Left,
): Promise<Record<keyof Context<never, never, never>, unknown>> {
  const partitions = options.partitions as AnyPartitions | undefined
  if (partitions !== undefined && !attempt.partition)
    throw invalid(
      'partition_missing',
      `${key} has partitions, but the request names none`,
      'Name the partition to materialize.',
    )
  return {
    partition: partitions && attempt.partition ? openPartition(partitions, attempt.partition) : undefined,
    resources: await resources.open(options.resources),
    attempt: attempt.attempt,
    runId: attempt.runId,
    traceparent: attempt.traceparent,
    signal: attempt.signal,
    log: attempt.log,
    metadata: (more: object) => void Object.assign(facts, Object.fromEntries(membersOf(Object(more)))),
    dataVersion: (version: unknown) => {
      reported.dataVersion = checkedVersion(key, version)
    },
    partitions: (of: DynamicPartitions) => keys.of(of),
  }
}
