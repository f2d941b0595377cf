import type { AttemptResultInput, InputRef, StoredValue } from '../../contract/dispatch.ts'
import { messageOf } from '../../lib/error.ts'
import { canonicalJson } from '../../lib/json.ts'
import { type AnyAsset, hasRows, isAsset, type ValueOf } from '../any-asset.ts'
import { optionsOf } from '../declaration.ts'
import type { Log } from '../declare/context.ts'
import type { Io } from '../declare/io.ts'
import type { DataRow } from '../declare/values.ts'
import { invalid, show } from '../invalid.ts'
import { isOwn, type Upstream, upstream } from '../partitions/mapped.ts'
import { type PartitionText, partitionText, rangeText } from '../partitions/partition-key.ts'
import { executeAsset } from './execute.ts'
import type { Alone, MaterializeOptions } from './materialize-options.ts'
import { MemoryValues } from './memory-values.ts'

export interface Materialized<Value> {
  /** True if the attempt succeeded: no error, and no failed check of severity `error`. */
  readonly ok: boolean
  /** The value. Reading it throws the error of a failed attempt. */
  readonly value: Value
  readonly metadata: Readonly<Record<string, unknown>>
  readonly checks: Readonly<Record<string, CheckOutcome>>
  /** The keys that it added and removed, by the names of dynamic sets. Empty if the attempt failed. */
  readonly keys: { readonly added: KeysBySet; readonly removed: KeysBySet }
  readonly error?: unknown
}

export type KeysBySet = Readonly<Record<string, readonly string[]>>

export interface CheckOutcome {
  readonly ok: boolean
  readonly severity: 'error' | 'warn'
  /** Further facts from the check. */
  readonly facts: Readonly<Record<string, unknown>>
}

const silent: Log = { debug() {}, info() {}, warn() {}, error() {} }

/** Runs an asset in this process, without a store and without a server. For tests. */
export function materialize<A extends AnyAsset>(asset: Alone<A> & A): Promise<Materialized<ValueOf<A>>>
export function materialize<A extends AnyAsset>(asset: A, options: MaterializeOptions<A>): Promise<Materialized<ValueOf<A>>>
export async function materialize(asset: AnyAsset, options: MaterializeOptions<AnyAsset> = {}): Promise<Materialized<unknown>> {
  if (!isAsset(asset))
    throw invalid('not_an_asset', `${show(asset)} is not an asset`, 'Import the asset and write materialize(revenue).')
  const store = new MemoryValues()
  const outcome = await executeAsset(asset, {
    partition: partitionOf(options.partition),
    inputs: await storeInputs(asset, options.inputs ?? {}, store),
    resources: options.resources ?? {},
    signal: new AbortController().signal,
    log: silent,
    attempt: 1,
    runId: 'test',
    store,
    describing: { root: process.cwd() },
  })
  const { output, partition_keys_added: added, partition_keys_removed: removed } = outcome.result
  const checks = (output?.checks ?? []).map(({ name, ok, severity, metadata }) => [
    name,
    { ok, severity, facts: metadata ?? {} },
  ])
  const result = {
    ok: outcome.result.outcome === 'SUCCEEDED',
    metadata: output?.metadata ?? {},
    checks: Object.fromEntries(checks) as Record<string, CheckOutcome>,
    keys: { added: bySet(added), removed: bySet(removed) },
    ...('error' in outcome && { error: outcome.error }),
  }
  return Object.defineProperty(result, 'value', {
    get() {
      if ('value' in outcome) return outcome.value
      throw outcome.error
    },
  }) as Materialized<unknown>
}

const bySet = (keys: AttemptResultInput['partition_keys_added']): KeysBySet =>
  Object.fromEntries((keys ?? []).map(({ set_name, keys }) => [set_name, keys]))
function partitionOf(given: unknown): PartitionText | undefined {
  if (given === undefined) return undefined
  return Array.isArray(given) ? rangeText(given) : partitionText(given)
}

/** Puts the given inputs where the body looks for them. */
async function storeInputs(
  asset: AnyAsset,
  given: Readonly<Record<string, unknown>>,
  store: MemoryValues,
): Promise<Record<string, InputRef>> {
  const declared = optionsOf<{ inputs?: Readonly<Record<string, Upstream>> }>(asset).inputs ?? {}
  for (const name of Object.keys(given)) {
    if (!Object.hasOwn(declared, name))
      throw invalid(
        'unknown_input',
        `${asset.key} has no input \`${name}\``,
        `Inputs: ${Object.keys(declared).join(', ') || 'none'}.`,
      )
  }
  const refs = Object.entries(declared)
    .filter(([name, input]) => Object.hasOwn(given, name) || isOwn(input))
    .map(async ([name, input]) => {
      const isFirst = isOwn(input) && given[name] === undefined
      return [name, await storeInput(name, upstream(input, asset), given[name], store, isFirst)] as const
    })
  return Object.fromEntries(await Promise.all(refs))
}

async function storeInput(
  name: string,
  { asset, mapping, many: said }: ReturnType<typeof upstream>,
  given: unknown,
  store: MemoryValues,
  isFirst: boolean,
): Promise<InputRef> {
  const isParted = optionsOf<{ partitions?: unknown }>(asset).partitions !== undefined
  const many = said ?? (isParted && given instanceof Map)
  const ref = (io: string, values: StoredValue[]): InputRef => ({ asset_key: asset.key, io, many, values })
  if (isFirst) return ref('none', [])
  if (hasRows(asset)) {
    if (typeof given !== 'object' || given === null || !(Symbol.iterator in given || Symbol.asyncIterator in given))
      throw invalid('bad_input', `input ${name} is ${show(given)}`, `${asset.key} is a table: pass an array of rows.`)
    const { path } = await store.writeRows(given as Iterable<DataRow>)
    return ref('parquet', [{ partition_key: '', materialization_id: name, path }])
  }
  const { io } = optionsOf<{ io?: Io<unknown> }>(asset)
  const put = async (key: string, value: unknown): Promise<StoredValue> => {
    const written = io ? await store.writeBytes(bytesOf(await io.write(value))) : await store.writeJson(jsonInput(name, value))
    // With a dimension, the text of a key names it; the value alone is what tests give.
    const along = mapping?.type === 'all' ? mapping.dimension : undefined
    const dimension = along === undefined ? key : { [along]: key }
    return { partition_key: partitionText(dimension).key, materialization_id: name, path: written.path }
  }
  if (!many) return ref(io?.name ?? 'json', [await put('', given)])
  const entries = given instanceof Map ? [...given] : Object.entries(given as object)
  return ref(io?.name ?? 'json', await Promise.all(entries.map(([key, value]) => put(String(key), value))))
}

const bytesOf = (bytes: Uint8Array | string): Uint8Array =>
  typeof bytes === 'string' ? new TextEncoder().encode(bytes) : bytes

function jsonInput(name: string, value: unknown): string {
  try {
    return canonicalJson(value)
  } catch (error) {
    throw invalid('bad_input', `input ${name} cannot be stored as JSON: ${messageOf(error)}`, 'Pass plain values.')
  }
}
