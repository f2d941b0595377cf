import { z } from 'zod'
import { alertDefinition } from './alert.ts'
import { errorDetail } from './error-schema.ts'
import { scheduleDefinition } from './schedule.ts'
import { sensorDefinition } from './sensor.ts'
import { serverSettings } from './server-settings.ts'

/** Words joined by `/`, e.g. `mart/revenue`: readable in a path, a URL and a selection without escaping. */
export const assetKeyPattern = /^[A-Za-z0-9_][A-Za-z0-9_.-]*(?:\/[A-Za-z0-9_][A-Za-z0-9_.-]*)*$/
const assetKey = z.string().max(255).regex(assetKeyPattern, 'must be words of A-Z a-z 0-9 _ . - joined by "/"')
const name = z.string().min(1).max(255)
const text = z.string().max(16_384)

/** The upstream partitions that an input loads. Absent: the partition of the same key, or the whole of an unpartitioned asset. */
const mapping = z.looseObject({ type: z.string() })

const retryPolicy = z.object({
  /** Attempts in all, the first included. */
  max_attempts: z.number().int().min(1).max(1_000),
  backoff: z.enum(['fixed', 'exponential']).default('exponential'),
  initial_ms: z.number().int().min(0).default(1_000),
  max_ms: z.number().int().min(0).default(300_000),
  /** Spread equal failures over time: up to half of the delay is taken away, by a hash of the attempt. */
  jitter: z.boolean().default(true),
})
export type RetryPolicy = z.infer<typeof retryPolicy>

/** One asset as its author declared it, without its code: what the graph records, plans are made of and people read. */
export const assetDefinition = z.object({
  asset_key: assetKey,
  kind: z.enum(['asset', 'table', 'command', 'source']),
  description: text.nullish(),
  group: name.default('default'),
  tags: z.record(name, text).default({}),
  owners: z.array(name).default([]),
  /** The technology it is made with, e.g. `python`, `duckdb`. */
  kinds: z.array(name).default([]),
  /** Values it loads, by the name its code knows them by. */
  inputs: z.record(name, z.object({ asset_key: assetKey, mapping: mapping.nullish() })).default({}),
  /** Assets that must come first and are not loaded. */
  deps: z.array(z.object({ asset_key: assetKey, mapping: mapping.nullish() })).default([]),
  partitions: z.looseObject({ type: z.string() }).nullish(),
  /** One task makes a whole range of partitions, up to this many; absent: a task for each. */
  ranges: z.object({ at_most: z.number().int().min(1).nullish() }).nullish(),
  /** How its value is kept: `json`, `parquet`, `none` (it keeps its own data) or the name of an IO of the project. */
  io: name.default('json'),
  /** For a source: where its data is. */
  uri: text.nullish(),
  retry: retryPolicy.nullish(),
  timeout_sec: z.number().int().min(1).nullish(),
  /** For an asset of a queue: how long its worker may be silent; by default a minute. */
  heartbeat_timeout_sec: z.number().int().min(1).nullish(),
  pool: name.nullish(),
  /** The queue of the workers that run it; by default the workers of the machine. */
  queue: name.nullish(),
  priority: z.number().int().min(-1_000).max(1_000).default(0),
  code_version: name.nullish(),
  renamed_from: assetKey.nullish(),
  /** Relative to the project folder. */
  file: text.nullish(),
  line: z.number().int().min(1).nullish(),
  checks: z.array(z.object({ name, severity: z.enum(['error', 'warn']) })).default([]),
  /** Freshness, overlap, and policies that later parts of Servo read: automation, backfill. */
  policies: z.record(name, z.unknown()).default({}),
})
export type AssetDefinition = z.infer<typeof assetDefinition>
export type AssetDefinitionInput = z.input<typeof assetDefinition>

/** How long the orchestrator waits, where the project sets it. */
const timing = z.object({
  /** How often every row is looked at again while anything is unfinished. */
  sweep_ms: z.number().int().min(1_000).nullish(),
  /** After how long a dispatch that a queue took is offered again, when no worker began it. */
  stuck_dispatch_ms: z.number().int().min(10_000).nullish(),
  /** From the cancellation of a run until its attempts are killed. */
  cancel_grace_ms: z.number().int().min(0).nullish(),
})

/** Everything a project declares. Loading a project returns it, and `servo` records it as facts. */
export const projectManifest = z.object({
  project: name,
  assets: z.array(assetDefinition).max(100_000),
  /** Named concurrency limits. */
  pools: z.record(name, z.number().int().min(1).max(100_000)).default({}),
  /** Queues of workers: the address to push work to, if workers do not poll, and how many attempts each may have at a time. */
  queues: z
    .record(
      name,
      z.object({ push: z.url({ protocol: /^https?$/ }).nullish(), limit: z.number().int().min(1).max(100_000).nullish() }),
    )
    .default({}),
  /** Attempts at a time on all queues together, if the project limits them. */
  concurrency: z.number().int().min(1).max(10_000).nullish(),
  alerts: z.array(alertDefinition).max(1_000).default([]),
  timing: timing.default({}),
  /** Who may call the server, and how much it takes on. */
  server: serverSettings.default({ oidc: [], limits: {} }),
  schedules: z.array(scheduleDefinition).max(100_000).default([]),
  sensors: z.array(sensorDefinition).max(100_000).default([]),
  /** Files besides modules that belong to its code: paths, folders and globs, relative to the project folder. */
  code_files: z.array(z.string()).nullish(),
})
export type ProjectManifest = z.infer<typeof projectManifest>
export type ProjectManifestInput = z.input<typeof projectManifest>

/** Something wrong with a project, with the place to repair it. */
export const projectProblem = z.object({
  /** `syntax_error`, `cycle`, `duplicate_key`, `missing_dependency`, `missing_config`, `load_failed`, … */
  code: name,
  message: z.string(),
  hint: z.string().nullish(),
  /** Relative to the project folder. */
  file: z.string().nullish(),
  line: z.number().int().nullish(),
  column: z.number().int().nullish(),
  /** If code threw: what it threw, besides the message. */
  detail: errorDetail.nullish(),
})
export type ProjectProblem = z.infer<typeof projectProblem>
