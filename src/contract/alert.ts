import { z } from 'zod'

/** What alerts may be about. */
export const alertKinds = [
  'run.failed',
  'check.failed',
  'schedule.late',
  'sensor.failing',
  'backfill.succeeded',
  'backfill.failed',
  'asset.stale',
] as const
export type AlertKind = (typeof alertKinds)[number]

/** Kinds that have assets, and kinds that have the labels of a run: by these an alert may be limited. */
export const kindsWithAssets: readonly AlertKind[] = [
  'run.failed',
  'check.failed',
  'backfill.succeeded',
  'backfill.failed',
  'asset.stale',
]
export const kindsWithLabels: readonly AlertKind[] = ['run.failed', 'check.failed']

const name = z.string().min(1).max(255)

/** An alert as a project declares it. Addresses and secrets that are named by a variable stay in the environment. */
export const alertDefinition = z.object({
  name,
  on: z.array(z.enum(alertKinds)).min(1),
  /** The address, or the variable that has it. */
  to: z.object({ url: z.string().max(4_096).nullish(), env: name.nullish() }),
  format: z.enum(['standard', 'slack']).default('standard'),
  /** Variables with the secrets that sign it. */
  secrets: z.array(name).max(10).default([]),
  select: z.array(z.string()).nullish(),
  labels: z.record(z.string(), z.string()).default({}),
  allow_private: z.boolean().default(false),
})
export type AlertDefinition = z.infer<typeof alertDefinition>
export type AlertDefinitionInput = z.input<typeof alertDefinition>
