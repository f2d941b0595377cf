import { isObject } from '../../lib/is-object.ts'
import { invalid, show } from '../invalid.ts'
import { checkOptionNames } from '../option-names.ts'

/** What is kept of the stored values of a partition. Servo removes the others in the background. */
export interface Keep {
  /** The newest so many materializations of each partition; 1, the current one, unless set. */
  versions?: number
  /** A value stays this many days after it was pushed out of the newest `versions`; 0 unless set. */
  days?: number
}

const names: readonly (keyof Keep)[] = ['versions', 'days']

/** More versions than this are no limit, and looking back over them would take long. */
const MAX_VERSIONS = 1_000
/** A hundred years. */
const MAX_DAYS = 36_500

const EXAMPLE = "Write keep: { versions: 3 }, { days: 30 }, both, or 'all'."

/** Refuses a `keep` that cannot be followed: of an asset, or of the config. */
export function checkKeep(owner: string, keep: unknown): void {
  const refused = (what: string): Error => invalid('bad_keep', what, EXAMPLE)
  if (keep === undefined || keep === 'all') return
  if (!isObject(keep) || Array.isArray(keep)) throw refused(`\`keep\` of ${owner} cannot be ${show(keep)}`)
  checkOptionNames(`\`keep\` of ${owner}`, keep, names)
  const { versions, days } = keep
  if (versions === undefined && days === undefined) throw refused(`\`keep\` of ${owner} says neither \`versions\` nor \`days\``)
  if (versions !== undefined && !isWhole(versions, 1, MAX_VERSIONS))
    throw refused(`\`keep.versions\` of ${owner} must be a whole number from 1 to ${MAX_VERSIONS}, not ${show(versions)}`)
  if (days !== undefined && !isWhole(days, 0, MAX_DAYS))
    throw refused(`\`keep.days\` of ${owner} must be a whole number from 0 to ${MAX_DAYS}, not ${show(days)}`)
}

const isWhole = (value: unknown, least: number, most: number): boolean =>
  typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most

/** The rule on record: undefined if everything is kept. What an asset says replaces what the project says. */
export function describeKeep(
  ofAsset: Keep | 'all' | undefined,
  ofProject: Keep | 'all' | undefined,
): Required<Keep> | undefined {
  const keep = ofAsset ?? ofProject ?? 'all'
  return keep === 'all' ? undefined : { versions: keep.versions ?? 1, days: keep.days ?? 0 }
}
