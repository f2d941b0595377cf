import path from 'node:path'
import type { AssetDefinitionInput, ProjectManifestInput } from '../../contract/project-manifest.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import type { PartitionMapping } from '../../partitions/mappings/mapping.ts'
import { type AnyAsset, assetKindOf, hasRows, isAsset } from '../any-asset.ts'
import { type Declaration, declarationOf, optionsOf } from '../declaration.ts'
import { describeAlert } from '../declare/alerts/alert.ts'
import type { Dependency, Freshness, Retry, Settings } from '../declare/asset-options.ts'
import { asCheck, type Checks } from '../declare/check.ts'
import type { Config, Timing } from '../declare/config.ts'
import type { Io } from '../declare/io.ts'
import { describeKeep } from '../declare/keep.ts'
import { isSensor } from '../declare/sensor.ts'
import { type Duration, durationMs } from '../duration.ts'
import { type Upstream, upstream } from '../partitions/mapped.ts'
import type { AnyPartitions, PartitionData } from '../partitions/partitions.ts'
import { isRanges } from '../partitions/ranges.ts'
import { describeServer } from '../server-config.ts'
import { describeMapping } from './describe-mapping.ts'
import { describeSchedule, describeSensor } from './describe-triggers.ts'

export interface Describing {
  readonly config: Config
  /** The project folder; file names are relative to it. */
  readonly root?: string
  /** The version of the code of a sensor, or of an asset that does not set it. */
  codeVersionOf?(value: object): string | undefined
}

/** Everything these values declare, as JSON has it. Other values are passed over. */
export function describeProject(values: Iterable<unknown>, about: Describing): ProjectManifestInput {
  const found = [...new Set(values)].flatMap((value) => {
    const declaration = declarationOf(value)
    return declaration === undefined ? [] : [{ declaration, value }]
  })
  const sorted = found.sort((a, b) => (a.declaration.name < b.declaration.name ? -1 : 1))
  return {
    project: about.config.project,
    assets: sorted.flatMap(({ value, declaration }) => (isAsset(value) ? [describeAsset(value, declaration, about)] : [])),
    pools: { ...about.config.pools },
    ...(about.config.queues && { queues: { ...about.config.queues } }),
    ...(about.config.alerts && { alerts: about.config.alerts.map(describeAlert) }),
    ...concurrencyOf(about.config),
    ...(about.config.timing && { timing: describeTiming(about.config.timing) }),
    ...(about.config.server && { server: describeServer(about.config.server) }),
    schedules: sorted
      .filter(({ declaration }) => declaration.kind === 'schedule')
      .map(({ declaration }) => ({ ...describeSchedule(declaration), ...placeOf(declaration, about) })),
    sensors: sorted.flatMap(({ declaration, value }) => {
      if (!isSensor(value)) return []
      const version = withoutUndefined({ code_version: about.codeVersionOf?.(value) })
      return [{ ...describeSensor(declaration), ...version, ...placeOf(declaration, about) }]
    }),
  }
}

interface DescribedOptions extends Settings<AnyPartitions> {
  readonly inputs?: Readonly<Record<string, Upstream>>
  readonly checks?: Checks<unknown>
  readonly io?: Io<unknown>
  readonly uri?: string
}

function describeAsset(asset: AnyAsset, declaration: Declaration, about: Describing): AssetDefinitionInput {
  const options = optionsOf<DescribedOptions>(asset)
  const inputs = Object.entries(options.inputs ?? {}).map(([name, input]) => [name, describeDependency(input, asset)])
  return withoutUndefined({
    asset_key: declaration.name,
    kind: assetKindOf(asset),
    description: options.description,
    group: options.group,
    tags: options.tags && { ...options.tags },
    owners: options.owners && [...options.owners],
    kinds: options.kinds && [...options.kinds],
    inputs: Object.fromEntries(inputs),
    deps: (options.deps ?? []).map((dep) => describeDependency(dep, asset)),
    partitions: options.partitions?.data,
    ranges: isRanges(options.partitions) ? options.partitions.ranges : undefined,
    io: ioOf(asset, options.io),
    uri: options.uri,
    retry: options.retry === undefined ? undefined : describeRetry(options.retry),
    // Rounded up: a task that may take half a second gets a whole one, not none.
    timeout_sec:
      options.timeout === undefined ? undefined : Math.max(1, Math.ceil(durationMs(options.timeout, 'timeout') / 1_000)),
    heartbeat_timeout_sec: heartbeatOf(options, about.config),
    pool: options.pool,
    queue: options.queue,
    priority: options.priority,
    code_version: options.version ?? about.codeVersionOf?.(asset),
    renamed_from: options.renamedFrom,
    checks: Object.entries(options.checks ?? {}).map(([name, check]) => ({ name, severity: asCheck(check).severity })),
    policies: withoutUndefined({
      freshness: options.freshness && describeFreshness(options.freshness),
      automation: options.automation?.data,
      overlap: options.overlap,
      backfill: options.backfill,
      always_new: options.alwaysNew,
      // A source stores nothing.
      keep: assetKindOf(asset) === 'source' ? undefined : describeKeep(options.keep, about.config.keep),
    }),
    ...placeOf(declaration, about),
  })
}

function describeDependency(dep: Dependency, self: AnyAsset): { asset_key: string; mapping?: PartitionMapping } {
  if (typeof dep === 'string') return { asset_key: dep }
  const { asset, mapping } = upstream(dep, self)
  return {
    asset_key: asset.key,
    ...(mapping && { mapping: describeMapping(mapping, partitionsOf(asset), partitionsOf(self)) }),
  }
}

const partitionsOf = (asset: AnyAsset): PartitionData | undefined =>
  optionsOf<{ partitions?: AnyPartitions }>(asset).partitions?.data

function ioOf(asset: AnyAsset, io: Io<unknown> | undefined): string {
  if (hasRows(asset)) return 'parquet'
  return assetKindOf(asset) === 'command' ? 'none' : (io?.name ?? 'json')
}

function describeRetry(retry: Retry): NonNullable<AssetDefinitionInput['retry']> {
  const { attempts, backoff, initial, max, jitter } = typeof retry === 'number' ? { attempts: retry } : retry
  return withoutUndefined({
    max_attempts: attempts,
    backoff,
    initial_ms: initial === undefined ? undefined : durationMs(initial, 'retry.initial'),
    max_ms: max === undefined ? undefined : durationMs(max, 'retry.max'),
    jitter,
  })
}

function describeFreshness(freshness: Freshness): object {
  if ('by' in freshness) return { type: 'by', by: freshness.by, timezone: freshness.timezone ?? 'UTC' }
  const { within, warn } = freshness
  return withoutUndefined({
    type: 'within',
    within_ms: durationMs(within, 'freshness.within'),
    warn_ms: warn === undefined ? undefined : durationMs(warn, 'freshness.warn'),
  })
}

function placeOf({ file, line }: Declaration, { root }: Describing): { file?: string; line?: number } {
  if (file === undefined) return {}
  return withoutUndefined({ file: root === undefined ? file : relativePath(root, file), line })
}

/** With forward slashes on every system. */
export const relativePath = (root: string, file: string): string => path.relative(root, file).split(path.sep).join('/')

/** Only workers of a queue send heartbeats; for them the project may set a default. */
function heartbeatOf({ queue, heartbeatTimeout }: DescribedOptions, { timing }: Config): number | undefined {
  const timeout = heartbeatTimeout ?? timing?.heartbeatTimeout
  if (queue === undefined || queue === 'default' || timeout === undefined) return undefined
  return Math.ceil(durationMs(timeout, 'heartbeatTimeout') / 1_000)
}

function describeTiming({ sweep, stuckDispatch, cancelGrace }: Timing): NonNullable<ProjectManifestInput['timing']> {
  const ms = (name: string, duration: Duration | undefined): number | undefined =>
    duration === undefined ? undefined : durationMs(duration, `timing.${name}`)
  return withoutUndefined({
    sweep_ms: ms('sweep', sweep),
    stuck_dispatch_ms: ms('stuckDispatch', stuckDispatch),
    cancel_grace_ms: ms('cancelGrace', cancelGrace),
  })
}

/** The settings of the environment for one machine: other environments have their own queues. */
function concurrencyOf({ environments = {} }: Config): { concurrency?: number } {
  const { dev } = environments
  return dev?.queue.type === 'in_process' && dev.queue.concurrency !== undefined ? { concurrency: dev.queue.concurrency } : {}
}
