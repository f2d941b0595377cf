import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'
import { scratchRoot } from './scratch.ts'
import { Workload } from './workload.ts'

/*
 * Folders with much history take minutes to make, and opening them changes nothing in them: they are kept from one
 * benchmark to the next, for as long as the source that made them is the same.
 */
export type Kind = keyof typeof streams

const streams = {
  tasks: { tasksPerRun: 100, liveRuns: 8, partitions: 365 },
  keys: { tasksPerRun: 0, liveRuns: 200 },
}

function placeOf(kind: Kind, tasks: number): string {
  return path.join(scratchRoot(), `kept-${kind}-${tasks}-${sourceHash}`)
}

/** Of the source as this process has loaded it. */
export const sourceHash = hashOfSource()

function hashOfSource(): string {
  const root = path.resolve(import.meta.dirname, '../..')
  const hash = createHash('sha256')
  for (const file of globSync('{src/{model,domain,engine}/**/*.ts,bench/lib/{stream,workload}.ts}', { cwd: root }).sort()) {
    if (!file.endsWith('.test.ts')) hash.update(file).update(readFileSync(path.join(root, file)))
  }
  return hash.digest('hex').slice(0, 12)
}

/** Keeps a copy of a folder as it is now. */
export function keepHistory(folder: string, tasks: number, kind: Kind = 'tasks'): void {
  const place = placeOf(kind, tasks)
  if (existsSync(place)) return
  forgetOthers(kind, tasks)
  const draft = `${place}.${process.pid}`
  cpSync(folder, draft, { recursive: true })
  // Opening is measured with a warm page cache, so the copy must not still be on its way to the disk.
  execFileSync('sync', ['-f', draft])
  renameSync(draft, place)
}

/** A folder with so many finished tasks, or run keys; made now if there is none. */
export async function historyOf(tasks: number, kind: Kind = 'tasks'): Promise<string> {
  const place = placeOf(kind, tasks)
  if (existsSync(place)) return place
  forgetOthers(kind, tasks)
  console.log(`making a folder with ${tasks.toLocaleString('en')} ${kind}, which takes a while; it is kept for the next time`)
  const draft = `${place}.${process.pid}`
  mkdirSync(draft, { recursive: true })
  await (await Workload.open(draft, streams[kind])).buildTo(tasks)
  renameSync(draft, place)
  return place
}

function forgetOthers(kind: Kind, tasks: number): void {
  for (const old of globSync(path.join(scratchRoot(), `kept-${kind}-${tasks}-*`))) rmSync(old, { recursive: true, force: true })
}
