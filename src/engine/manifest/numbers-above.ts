import { isServoError } from '../../lib/error.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { numberOf, type Paths, type Scope } from '../paths.ts'
import type { Manifest } from './manifest.ts'
import type { PublishedMark } from './published-mark.ts'
import { boundaryOf, manifestNumbers, readCopy, readManifest } from './stored-manifests.ts'

type Numbers = Pick<Manifest, 'number' | 'epoch' | 'publish'>

/** Numbers that no file, manifest, collector or frozen compactor has seen, so that no old file can be mistaken for a new one. */
export async function numbersAbove(
  { store, scope, paths }: { readonly store: ObjectStore; readonly scope: Scope; readonly paths: Paths },
  mark?: PublishedMark,
): Promise<Numbers> {
  const known: Numbers[] = mark === undefined ? [] : [{ ...mark, number: mark.manifest }]
  const numbers = await manifestNumbers(store, paths)
  for (const read of [
    ...numbers.map((number) => () => readManifest(store, paths, scope, number)),
    () => readCopy(store, paths, scope),
  ]) {
    const manifest = await unlessDamaged(read())
    if (manifest !== undefined) known.push(manifest)
  }
  let epoch = 0
  let publish = 0
  for await (const { path } of store.list(paths.state)) {
    if (Number.isNaN(numberOf(path))) continue
    publish = Math.max(publish, numberOf(path))
    epoch = Math.max(epoch, Number(/-(\d+)/.exec(path.slice(path.lastIndexOf('/')))?.[1] ?? 0))
  }
  const boundary = await boundaryOf(store, paths)
  let number = Math.max(boundary, numbers.at(-1) ?? 0, ...known.map((manifest) => manifest.number))
  for (const manifest of known) {
    publish = Math.max(publish, manifest.publish)
    // Each manifest that cannot be read may have been a takeover.
    epoch = Math.max(epoch, manifest.epoch + number - manifest.number)
  }
  // One more than the next, or a view that holds the last publish would mistake this for the publish that follows it.
  publish += 1
  let archives = 0
  for await (const _ of store.list(paths.archives)) archives += 1
  // Every manifest is a publish, a takeover or names an archive, so there were at least this many, even if all are gone.
  number = Math.max(number, publish + epoch + archives)
  return { number, epoch, publish }
}

async function unlessDamaged<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading
  } catch (error) {
    if (isServoError(error, 'corrupt')) return undefined
    throw error
  }
}
