import { z } from 'zod'
import type { AssetDefinition } from '../../contract/project-manifest.ts'
import { DAY_MS } from '../../lib/time.ts'

const keepRule = z.object({ versions: z.number().int().min(1), days: z.number().int().min(0) })

/** Which stored values of a partition are kept: the newest `versions`, and each for `days` after it was pushed out of these. */
export type KeepRule = z.infer<typeof keepRule>

/** The rule of an asset; undefined if all its values are kept. What cannot be read removes nothing. */
export function keepRuleOf({ policies }: Pick<AssetDefinition, 'policies'>): KeepRule | undefined {
  return policies['keep'] === undefined ? undefined : keepRule.safeParse(policies['keep']).data
}

/** What was pushed out by a materialization of this moment or before is no longer kept. */
export const expiredBefore = ({ days }: KeepRule, now: number): number => now - days * DAY_MS
