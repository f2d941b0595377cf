import { isSegment } from '../../ports/object-path.ts'
import type { ListedObject } from '../../ports/object-store.ts'
import { type Disk, undefinedIfMissing } from './disk.ts'

/** Sizes asked for at once: enough to keep libuv's threads busy, few enough that a reader who stops early wastes little. */
const SIZES_AT_ONCE = 64

/**
 * The objects under `prefix` in byte order of their whole paths, reading one folder at a time, and only folders that can
 * hold something after `after`. A folder counts as its name with the slash, so `a-b` and `a.json` come before `a/x`, and
 * `a0` after it: `-` and `.` are smaller than `/`, digits and letters are greater.
 * Symlinks are neither followed nor listed, nor is anything whose name could not be a segment, `.tmp` first of all.
 */
export async function* walk(disk: Disk, root: string, prefix: string, after: string): AsyncGenerator<ListedObject> {
  // The last is the next to visit. Folders are told from objects by the slash at their end.
  const ahead: string[] = mayHold(prefix, after) ? [prefix] : []
  while (ahead.length > 0) {
    if (isFolder(ahead.at(-1)!)) {
      const entries = await entriesOf(ahead.pop()!)
      for (let index = entries.length - 1; index >= 0; index -= 1) ahead.push(entries[index]!)
      continue
    }
    const paths: string[] = []
    while (ahead.length > 0 && paths.length < SIZES_AT_ONCE && !isFolder(ahead.at(-1)!)) paths.push(ahead.pop()!)
    const sizes = await Promise.all(paths.map(sizeOf))
    for (const [index, path] of paths.entries()) {
      const size = sizes[index]
      if (size !== undefined) yield { path, size }
    }
  }

  async function entriesOf(folder: string): Promise<string[]> {
    const entries = await disk.readdir(`${root}/${folder}`, { withFileTypes: true }).catch(undefinedIfMissing)
    const paths: string[] = []
    for (const entry of entries ?? []) {
      if (!isSegment(entry.name)) continue
      if (entry.isFile() && folder + entry.name > after) paths.push(folder + entry.name)
      else if (entry.isDirectory() && mayHold(`${folder}${entry.name}/`, after)) paths.push(`${folder}${entry.name}/`)
    }
    return paths.sort()
  }

  async function sizeOf(path: string): Promise<number | undefined> {
    // An object may be deleted between reading its folder and asking for its size.
    const stat = await disk.lstat(`${root}/${path}`).catch(undefinedIfMissing)
    return stat?.isFile() ? stat.size : undefined
  }
}

function isFolder(path: string): boolean {
  return path === '' || path.endsWith('/')
}

/** Whether a path that starts with `folder` can come after `after`. */
function mayHold(folder: string, after: string): boolean {
  return folder > after || after.startsWith(folder)
}
