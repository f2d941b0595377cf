import { isPathPart } from '../../ports/object-path.ts'
import type { ListedObject } from '../../ports/object-store.ts'
import { type Disk, undefinedIfMissing } from './disk.ts'

/**
 * The objects under `prefix` in byte order of their whole paths, reading one folder at a time, and only folders that can
 * hold something after `after`. A folder counts as its name with the slash, so `a-b` and `a.json` come before `a/x`, and
 * `a0` after it: `-` and `.` are smaller than `/`, digits and letters are greater.
 * Symlinks are neither followed nor listed, nor are names that cannot be part of a path, above all `.tmp`.
 */
export async function* walk(disk: Disk, root: string, prefix: string, after: string): AsyncGenerator<ListedObject> {
  // The last is the next to visit. A slash at the end distinguishes folders from objects.
  const ahead: string[] = mayHold(prefix, after) ? [prefix] : []
  while (ahead.length > 0) {
    const path = ahead.pop()!
    if (!isFolder(path)) {
      yield { path }
      continue
    }
    const entries = await entriesOf(path)
    for (let index = entries.length - 1; index >= 0; index -= 1) ahead.push(entries[index]!)
  }

  async function entriesOf(folder: string): Promise<string[]> {
    const entries = await disk.readdir(`${root}/${folder}`, { withFileTypes: true }).catch(undefinedIfMissing)
    const paths: string[] = []
    for (const entry of entries ?? []) {
      if (!isPathPart(entry.name)) continue
      if (entry.isFile() && folder + entry.name > after) paths.push(folder + entry.name)
      else if (entry.isDirectory() && mayHold(`${folder}${entry.name}/`, after)) paths.push(`${folder}${entry.name}/`)
    }
    return paths.sort()
  }
}

/** The folders directly below `prefix`, in byte order of their paths with the slash. */
export async function foldersIn(disk: Disk, root: string, prefix: string): Promise<string[]> {
  const entries = await disk.readdir(`${root}/${prefix}`, { withFileTypes: true }).catch(undefinedIfMissing)
  const folders = (entries ?? []).filter((entry) => entry.isDirectory() && isPathPart(entry.name))
  return folders
    .map((entry) => `${entry.name}/`)
    .sort()
    .map((name) => name.slice(0, -1))
}

function isFolder(path: string): boolean {
  return path === '' || path.endsWith('/')
}

/** True if a path that starts with `folder` can come after `after`. */
function mayHold(folder: string, after: string): boolean {
  return folder > after || after.startsWith(folder)
}
