import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { InputRef, StoredValue } from '../../contract/dispatch.ts'
import { invalid } from '../../sdk/invalid.ts'
import { valuesOfDimensions } from '../../sdk/partitions/partition-key.ts'
import { sourceFiles } from './source-files.ts'
import { checkBytes, checkFile, checkStoredPath, throwMissing } from './stored-file.ts'
import { inlineBytes, type ValueStorage, valuesIn } from './stored-values.ts'

/** An input as a program reads it: files, and for a small JSON value the value itself. */
export interface GivenInput {
  readonly asset: string
  /** `parquet`, `json`, or the name of the IO that wrote it. */
  readonly format: string
  /** The only file; null if there are several, or if there is none yet. */
  readonly path: string | null
  readonly files: readonly GivenFile[]
}

export interface GivenFile {
  /** Null for an asset without partitions. */
  readonly partition: string | null
  /** The parts of the partition, if it has several dimensions. */
  readonly dimensions?: Readonly<Record<string, string>>
  readonly path: string
  readonly value?: unknown
}

/** All values of an input together. The environment of a program is no place for more. */
const SMALL_BYTES = 64 * 1024

export interface InputRequest {
  readonly ref: InputRef
  /** Whether the partitions of the asset have several dimensions. */
  readonly hasDimensions: boolean
  /** Where copies go, if the store is not a folder: the beginning of their paths. */
  readonly copies: string
}

/** True if a program is told a list of files. That follows from the declaration, not from how many files there are today. */
export const isSeveral = ({ many, uri }: InputRef): boolean => many || /[*?]/.test(uri ?? '')

/** The files of an input. A program has the rights of the worker: it could write to these files, and must not. */
export async function givenInput(storage: ValueStorage, request: InputRequest): Promise<GivenInput> {
  const { ref } = request
  const files = ref.uri ? await filesOfSource(request, storage.projectDir) : await filesOfValues(storage, request)
  return { asset: ref.asset_key, format: ref.io, path: isSeveral(ref) ? null : (files[0]?.path ?? null), files }
}

async function filesOfSource(request: InputRequest, projectDir: string): Promise<GivenFile[]> {
  const { ref } = request
  if (ref.values.length === 0) return (await sourceFiles(ref, projectDir)).map((file) => ({ partition: null, path: file }))
  const found = ref.values.map(async (value) => {
    const files = await sourceFiles({ ...ref, values: [value] }, projectDir)
    return files.map((file) => ({ ...partitionOf(value, request), path: file }))
  })
  return (await Promise.all(found)).flat()
}

async function filesOfValues(storage: ValueStorage, request: InputRequest): Promise<GivenFile[]> {
  const { ref, copies } = request
  for (const value of ref.values) {
    if (value.path) checkStoredPath(value.path, storage.fileOf)
    else if (!value.value) throwNoValue(ref, value)
  }
  const withValues = ref.io === 'json' && (await isSmall(storage, ref.values))
  const { readJson } = valuesIn(storage)
  const files: GivenFile[] = []
  // One after the other: there may be many thousands.
  for (const [i, value] of ref.values.entries()) {
    const file = await fileOf(storage, value, `${copies}-${i}`)
    files.push({
      ...partitionOf(value, request),
      path: path.resolve(file),
      ...(withValues && { value: await readJson(value) }),
    })
  }
  return files
}

function partitionOf({ partition_key }: StoredValue, { hasDimensions }: InputRequest): Omit<GivenFile, 'path'> {
  if (partition_key === '') return { partition: null }
  return { partition: partition_key, ...(hasDimensions && { dimensions: valuesOfDimensions(partition_key) }) }
}

async function isSmall({ store }: ValueStorage, values: readonly StoredValue[]): Promise<boolean> {
  let bytes = 0
  for (const { path, value } of values) {
    bytes += typeof value === 'string' ? value.length : ((await store.size(path ?? '')) ?? throwMissing(String(path)))
    if (bytes > SMALL_BYTES) return false
  }
  return true
}

/** The value as a file: where it lies, or a copy if it lies in no folder. A program reads a file, whatever its value is stored in. */
async function fileOf(storage: ValueStorage, value: StoredValue, copies: string): Promise<string> {
  if (typeof value.value === 'string') {
    const file = `${copies}.json`
    await writeFile(file, inlineBytes(value.value, value))
    return file
  }
  const object = value.path ?? ''
  const file = storage.fileOf?.(object)
  if (file !== undefined) {
    if (!existsSync(file)) throwMissing(object)
    await checkFile(file, object, value)
    return file
  }
  const copy = `${copies}${path.extname(object)}`
  const bytes = (await storage.store.get(object)) ?? throwMissing(object)
  checkBytes(object, bytes, value)
  await writeFile(copy, bytes)
  return copy
}

function throwNoValue({ asset_key }: InputRef, { partition_key }: StoredValue): never {
  const whose = partition_key === '' ? asset_key : `${asset_key}[${partition_key}]`
  throw invalid(
    'no_value',
    `there is no value of ${whose} to load: it returned nothing, or was made outside of Servo and only reported`,
    `Run ${asset_key}, or list it in deps instead of inputs and read its data in the program.`,
  )
}
