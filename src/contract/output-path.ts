import { sha256 } from '../lib/hash.ts'

/** What is being made, and by which execution. */
export interface OutputPlace {
  readonly assetKey: string
  readonly partitionKey: string | null | undefined
  /** Of this execution and no other, so that two of one attempt never write to the same place. */
  readonly materializationId: string | null | undefined
}

/** The folder in the data store where all executions of a partition write, each under a name of its own. */
export const outputFolder = (assetKey: string, partitionKey: string | null | undefined): string =>
  `data/${assetKey}/${partitionSegment(partitionKey)}/`

/**
 * Segments that mean themselves and nothing else to every reader: no `..` and no leading slash, no backslash, no
 * character of a glob, no scheme of a URL, and no `=`, which DuckDB would take for a column.
 */
const SEGMENT = '[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}'
const pathPattern = new RegExp(`^data(?:/${SEGMENT}){3,}$`)

/** The longest key that S3 and GCS accept. */
const MAX_PATH = 1_024

/** True if this can be the path of a value at all. */
export const isOutputPath = (path: string): boolean => path.length <= MAX_PATH && pathPattern.test(path)

/** True if the execution may write there: a file that bears its name, where the partition lies. */
export function isOwnPath(path: string, { assetKey, partitionKey, materializationId }: OutputPlace): boolean {
  return isOutputPath(path) && bears(path, outputFolder(assetKey, partitionKey), materializationId)
}

/**
 * True if the execution can have written there, as far as its reader knows: a whole range of partitions may have been made
 * in one place that is called otherwise.
 */
export function isPathOf(path: string, assetKey: string, materializationId: string): boolean {
  const folder = `data/${assetKey}/`
  if (!isOutputPath(path) || !path.startsWith(folder)) return false
  return bears(path, path.slice(0, path.indexOf('/', folder.length) + 1), materializationId)
}

/**
 * One file, whose name is the id, a dot and an ending. A folder would do as well, were it not for assets that are called like folders of
 * others: below `data/a/b/` the partition `b` of `a` would reach what `a/b` has made.
 */
function bears(path: string, folder: string, materializationId: string | null | undefined): boolean {
  const name = path.slice(folder.length)
  if (!path.startsWith(folder) || !materializationId || name.includes('/')) return false
  return name.startsWith(`${materializationId}.`) && !name.endsWith('.')
}

/** A file name on any system: what is longer is shortened, with a hash of the whole. */
const MAX_PARTITION = 120

/**
 * A partition in the alphabet of paths, as readable as can be. It is only for people: what makes the path unique follows it.
 */
export function partitionSegment(key: string | null | undefined): string {
  if (key === undefined || key === null || key === '') return '_'
  const plain = key.replaceAll(',', '_').replace(/[^A-Za-z0-9._-]|^\./g, '-')
  if (plain === key && key.length <= MAX_PARTITION && key !== '_') return key
  return `${plain.slice(0, MAX_PARTITION)}-${sha256(key).slice(0, 8)}`
}
