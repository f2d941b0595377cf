import { sha256 } from '../lib/hash.ts'

/** The asset and partition that is being made, and the execution that makes it. */
export interface OutputPlace {
  readonly assetKey: string
  readonly partitionKey: string | null | undefined
  /** Unique to this execution, so that two executions of one attempt never write to the same path. */
  readonly materializationId: string | null | undefined
}

/** The folder in the data store where all executions of a partition write, each under a name of its own. */
export const outputFolder = (assetKey: string, partitionKey: string | null | undefined): string =>
  `data/${assetKey}/${partitionPart(partitionKey)}/`

/**
 * The parts of a path are literal to every reader: no `..` and no leading slash, no backslash, no glob character, no URL scheme,
 * and no `=`, which DuckDB would read as a column.
 */
const PART = '[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}'
/** The form of the path of a value, as SQL reads it too. */
export const OUTPUT_PATH = `data(?:/${PART}){3,}`
const pathPattern = new RegExp(`^${OUTPUT_PATH}$`)

/** The longest key that S3 and GCS accept. */
const MAX_PATH = 1_024

/** True if this has the form of the path of a value. */
export const isOutputPath = (path: string): boolean => path.length <= MAX_PATH && pathPattern.test(path)

/** True if the execution may write there: the file has the execution's id as its name and is in the partition's folder. */
export function isOwnPath(path: string, { assetKey, partitionKey, materializationId }: OutputPlace): boolean {
  return isOutputPath(path) && isNamedAfter(path, outputFolder(assetKey, partitionKey), materializationId)
}

/**
 * True if the execution may have written there, as far as a reader can check: a range of partitions is written to one file, under
 * the name of the range instead of the partition.
 */
export function isPathOf(path: string, assetKey: string, materializationId: string): boolean {
  const folder = `data/${assetKey}/`
  if (!isOutputPath(path) || !path.startsWith(folder)) return false
  return isNamedAfter(path, path.slice(0, path.indexOf('/', folder.length) + 1), materializationId)
}

/**
 * One file per execution, named by its id, a dot and an extension. A folder per execution would be ambiguous: asset `a/b` has the same path
 * as partition `b` of asset `a`.
 */
function isNamedAfter(path: string, folder: string, materializationId: string | null | undefined): boolean {
  const name = path.slice(folder.length)
  if (!path.startsWith(folder) || !materializationId || name.includes('/')) return false
  return name.startsWith(`${materializationId}.`) && !name.endsWith('.')
}

/** Short enough for a file name on any system. Longer keys are cut and get a hash of the whole key. */
const MAX_PARTITION = 120

/**
 * A partition key as a part of a path, kept as readable as possible. It is for people only: the id that follows makes the path unique.
 */
export function partitionPart(key: string | null | undefined): string {
  if (key === undefined || key === null || key === '') return '_'
  const plain = key.replaceAll(',', '_').replace(/[^A-Za-z0-9._-]|^\./g, '-')
  if (plain === key && key.length <= MAX_PARTITION && key !== '_') return key
  return `${plain.slice(0, MAX_PARTITION)}-${sha256(key).slice(0, 8)}`
}
