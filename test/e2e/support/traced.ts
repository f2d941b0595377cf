import fs from 'node:fs'
import type { TestProject } from './project.ts'

/**
 * Code for assets that write down when they begin and end, and for which leader: a worker is a child of the process that
 * leads. Lines are appended to one file, so their order is the order in which things happened, whoever wrote them.
 */
export const TRACED = `import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { asset } from 'servo-flow'

const trace = (what, key, runId) =>
  appendFileSync('trace', JSON.stringify({ what, key, run: runId, leader: process.ppid }) + '\\n')
const traced = (key, ms, deps = []) => asset(key, {
  deps,
  async run({ runId }) {
    trace('begin', key, runId)
    await sleep(ms)
    trace('end', key, runId)
  },
})
`

interface TraceLine {
  readonly what: 'begin' | 'end'
  readonly key: string
  readonly run: string
  /** The process that the worker worked for. */
  readonly leader: number
}

function traceOf(project: TestProject): TraceLine[] {
  const file = project.file('trace')
  if (!fs.existsSync(file)) return []
  const lines = fs.readFileSync(file, 'utf8').split('\n').slice(0, -1)
  return lines.map((line) => JSON.parse(line) as TraceLine)
}

export const beginnings = (project: TestProject): TraceLine[] => traceOf(project).filter(({ what }) => what === 'begin')
export const ends = (project: TestProject): TraceLine[] => traceOf(project).filter(({ what }) => what === 'end')

/** The leaders in the order in which attempts began under them; one that comes twice led at the same time as another. */
export function leadersInOrder(project: TestProject): number[] {
  return beginnings(project)
    .map(({ leader }) => leader)
    .filter((leader, i, all) => leader !== all[i - 1])
}

interface PublishedManifest {
  readonly number: number
  readonly epoch: number
  readonly compactor: string
}

/** The manifests that lie in the folder, oldest first. */
export function manifestsOf(project: TestProject): PublishedManifest[] {
  return fs
    .globSync('.servo/tenant=*/workspace=*/manifests/orchestration/*.json', { cwd: project.dir })
    .sort()
    .flatMap((name) => {
      try {
        const { manifest } = JSON.parse(fs.readFileSync(project.file(name), 'utf8')) as { manifest: PublishedManifest }
        return [manifest]
      } catch {
        // Collected since it was listed.
        return []
      }
    })
}
