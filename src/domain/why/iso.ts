import { toIso } from '../../lib/time.ts'

export const isoOrNull = (ms: number | null | undefined): string | null => (ms === null || ms === undefined ? null : toIso(ms))
