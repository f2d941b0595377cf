import { glob } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { InputRef } from '../../contract/dispatch.ts'
import { ServoError } from '../../lib/error.ts'
import { invalid } from '../../sdk/invalid.ts'
import { valuesOfDimensions } from '../../sdk/partitions/partition-key.ts'

/** The Parquet files of a source: its URI with the partitions put in, relative to the project, `*` and `**` resolved. */
export async function sourceFiles(ref: InputRef, projectDir: string): Promise<string[]> {
  const partitions = ref.values.length > 0 ? ref.values.map((value) => value.partition_key) : ['']
  const patterns = new Set(partitions.map((key) => patternOf(ref, key)))
  const found = [...patterns].map(async (pattern) => {
    const absolute = path.resolve(projectDir, pattern)
    // Only the URI that the author wrote is a pattern: the key of a partition may contain a *.
    if (!/[*?]/.test(ref.uri ?? '')) return [absolute]
    const files = (await Array.fromAsync(glob(absolute))).sort()
    if (files.length > 0) return files
    throw new ServoError('not_found', 'no_source_files', `source ${ref.asset_key} has no files: nothing matches ${absolute}`, {
      hint: 'Check the uri of the source and whether its files have arrived.',
      facts: { asset_key: ref.asset_key, uri: ref.uri },
    })
  })
  return (await Promise.all(found)).flat()
}

/** The URI of a source as a path or glob, with the values of a partition in place of its parameters. */
function patternOf({ asset_key, uri }: InputRef, partitionKey: string): string {
  const text = uri ?? ''
  const scheme = /^([a-z][a-z0-9+.-]+):\/\//i.exec(text)?.[1]
  if (scheme !== undefined && scheme !== 'file')
    throw invalid(
      'unsupported_uri',
      `source ${asset_key} is at ${text}, but workers can only read sources from files`,
      `Mount or copy it, and write a path relative to the project. Or fetch ${scheme}:// in the body of a table.`,
    )
  // A key without `name=` has one dimension only.
  const named = partitionKey.includes('=') ? valuesOfDimensions(partitionKey) : {}
  const dimensions: Record<string, string> = { ...named, key: partitionKey }
  const located = scheme === 'file' ? fileURLToPath(text) : text
  return located.replace(/\{(\w+)\}/g, (whole, name: string) => checkPathPart(dimensions[name] ?? whole, asset_key))
}

/** A partition becomes the name of a file or folder, and must not lead anywhere else. */
function checkPathPart(value: string, assetKey: string): string {
  if (value !== '..' && value !== '.' && !/[/\\\0]/.test(value)) return value
  throw invalid(
    'bad_partition',
    `partition ${JSON.stringify(value)} of ${assetKey} cannot be part of a file name`,
    'Rename it, or write the keys of its windows in another format.',
  )
}
