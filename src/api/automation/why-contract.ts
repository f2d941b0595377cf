import { z } from 'zod'
import type { Conflict } from '../../domain/why/conflicts.ts'
import type { WhyAnswer, WhyKind } from '../../domain/why/reasons.ts'
import { timestamp } from '../../model/envelope.ts'

export const reasonQuery = z.object({
  /** Of a schedule: 05:00, 2025-01-15T05:00 in its zone, or a moment with a zone. */
  at: z.string().min(1).max(64).optional(),
  /** Of an asset. */
  partition: z.string().min(1).max(2_048).optional(),
  /** Of a sensor: the id of a message to it. */
  message: z.string().min(1).max(1_000).optional(),
})
export type ReasonQuery = z.infer<typeof reasonQuery>

export const conflictQuery = z.object({
  limit: z.coerce.number().int().min(1).max(1_000).default(50),
  cursor: z.string().max(2_048).optional(),
  since: timestamp.optional(),
  until: timestamp.optional(),
})
export type ConflictQuery = z.infer<typeof conflictQuery>

export interface ConflictPage {
  readonly conflicts: readonly Conflict[]
  readonly next_cursor: string | null
}

/** Why something ran or did not, and who asked for different things under one name. */
export interface WhyApi {
  why(kind: WhyKind, name: string, query: ReasonQuery): Promise<WhyAnswer>
  /** The newest first. */
  conflicts(query: ConflictQuery): Promise<ConflictPage>
}
