import { z } from 'zod'
import { DAY_MS } from '../lib/time.ts'
import { errorDetail } from './error-schema.ts'
import { isOutputPath } from './output-path.ts'
import { reportedKeys } from './partition-keys.ts'
import type { ReportedCheck } from './reported-check.ts'
import { MAX_INLINE_BYTES } from './stored-output.ts'

/** Where one materialization of an upstream asset is stored. */
const storedValue = z.object({
  partition_key: z.string(),
  materialization_id: z.string(),
  /** Path in the data store, as the attempt that wrote it reported. */
  path: z.string().nullish(),
  /** A small value has no file: here it is, as JSON text. */
  value: z.string().nullish(),
  /** Size and SHA-256 of the file or of the text. Whoever reads the value checks them. */
  bytes: z.number().nullish(),
  sha256: z.string().nullish(),
})

/** The values that an input loads: one stored value, or several when it takes more than one partition. */
const inputRef = z.object({
  asset_key: z.string(),
  io: z.string(),
  uri: z.string().nullish(),
  /** True if the code gets a collection of values instead of one. */
  many: z.boolean().default(false),
  values: z.array(storedValue),
})
export type InputRef = z.infer<typeof inputRef>
/** One materialization, as a dispatch names it. */
export type StoredValue = InputRef['values'][number]

/** A piece of work as a worker receives it, in whatever language the worker is written. */
export const dispatchEnvelope = z.object({
  /** Queue-safe id of the dispatch. */
  task_id: z.string(),
  task_key: z.string(),
  run_id: z.string(),
  attempt: z.number().int().min(1),
  /** Authenticates every report about this attempt. */
  attempt_id: z.string(),
  asset_key: z.string(),
  partition: z
    .object({
      key: z.string(),
      values: z.record(z.string(), z.string()).nullish(),
      /** For an asset that is made in ranges: all partitions to make. The key names them together. */
      keys: z.array(z.string()).nullish(),
    })
    .nullish(),
  /** Absent for workers that are connected by a pipe. */
  callback_base_url: z.string().nullish(),
  task_token: z.string().nullish(),
  token_expires_at: z.string().nullish(),
  traceparent: z.string().nullish(),
  payload: z.object({
    graph_version: z.string().nullish(),
    inputs: z.record(z.string(), inputRef).default({}),
    timeout_sec: z.number().int().nullish(),
    /** How long a worker may be silent before its attempt is given up as lost. */
    heartbeat_timeout_sec: z.number().int().nullish(),
    /** Where to write a value that other assets load: in this folder, named by the `materialization_id`, a dot and an extension. */
    output_folder: z.string().nullish(),
    /** A JSON value of up to so many bytes may be reported as `output.value` instead of being written to a file. */
    inline_bytes: z.number().int().nullish(),
    /** Labels of the run. */
    labels: z.record(z.string(), z.string()).default({}),
  }),
})
export type DispatchEnvelope = z.infer<typeof dispatchEnvelope>

/**
 * Why an attempt failed, by what may be done about it. `user`: the code threw. `fatal`: it reported that a retry is of no
 * use. `timeout`, `crashed` (its process ended) and `lost` (the end is unknown) are about the worker, `invalid` about a value that
 * does not fit its schema or its checks, `infrastructure` about storage that could not be reached or a worker that could not be
 * started.
 */
export const errorCategories = ['user', 'fatal', 'timeout', 'crashed', 'lost', 'invalid', 'infrastructure'] as const
export type ErrorCategory = (typeof errorCategories)[number]

/** More than any one execution makes, and exact as a number. */
const MAX_COUNT = 1e15
const count = z.number().int().min(0).max(MAX_COUNT)

/** Longer than any caller waits, and a moment in time that can be written. */
const LONGEST_WAIT_MS = 100 * 366 * DAY_MS

export const reportedCheck = z.object({
  name: z.string(),
  ok: z.boolean(),
  severity: z.enum(['error', 'warn']),
  metadata: z.record(z.string(), z.unknown()).nullish(),
}) satisfies z.ZodType<ReportedCheck>

/** How an attempt ended, as its worker reports it. */
export const attemptResult = z.object({
  outcome: z.enum(['SUCCEEDED', 'FAILED', 'CANCELLED']),
  /** The id of the result; unique to this execution, so that its files cannot be mistaken for another's. */
  materialization_id: z.string().nullish(),
  output: z
    .object({
      /** In the data store, below `output_folder`. */
      path: z.string().refine(isOutputPath, 'must be a path below the output_folder of the dispatch').nullish(),
      /** A JSON value that is recorded with the report instead of in a file: canonical JSON text, of at most `inline_bytes` bytes. */
      value: z.string().min(1).max(MAX_INLINE_BYTES).nullish(),
      /** Size of the file or of the text. */
      bytes: count.nullish(),
      /** SHA-256 of the same bytes, in hexadecimal. Readers check it. */
      sha256: z
        .string()
        .regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 in lower-case hexadecimal')
        .nullish(),
      rows: count.nullish(),
      /** Equal data has equal versions. A longer one would be a column full of data. */
      data_version: z.string().min(1).max(512).nullish(),
      metadata: z.record(z.string(), z.unknown()).default({}),
      checks: z.array(reportedCheck).default([]),
    })
    .nullish(),
  error: z
    .object({
      category: z.enum(errorCategories),
      message: z.string(),
      ...errorDetail.shape,
      retryable: z.boolean(),
      /** From `throw new RetryAfter('30s')`. */
      retry_after_ms: z.number().int().min(0).max(LONGEST_WAIT_MS).nullish(),
    })
    .nullish(),
  code_version: z.string().nullish(),
  /** When the code began, by the worker's clock, uncorrected: for people only. */
  duration_ms: z.number().min(0).nullish(),
  metrics: z.record(z.string(), z.number()).nullish(),
  /** They count if the attempt succeeded and its end is accepted. */
  ...reportedKeys,
})
export type AttemptResult = z.infer<typeof attemptResult>
export type AttemptResultInput = z.input<typeof attemptResult>
export type AttemptOutput = NonNullable<AttemptResultInput['output']>
