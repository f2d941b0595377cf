import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'

export interface CrashProject {
  readonly tasks: number
  readonly width: number
  readonly taskMs: number
}

/** A project whose tasks take a while, fail now and then, and add up what their upstreams made. */
export async function crashProject({ tasks, width, taskMs }: CrashProject): Promise<string> {
  const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'servo-crash-run-'))
  await fs.mkdir(path.join(dir, 'assets'))
  await fs.writeFile(
    path.join(dir, 'servo.config.ts'),
    `import { defineConfig } from 'servo-flow'
export default defineConfig({ project: 'crash', dirs: ['./assets'] })
`,
  )
  await fs.writeFile(
    path.join(dir, 'assets/tasks.ts'),
    `import { setTimeout as sleep } from 'node:timers/promises'
import { asset } from 'servo-flow'

const made = []
for (let i = 0; i < ${tasks}; i++) {
  const inputs = i < ${width} ? {} : { above: made[i - ${width}], ...(i % 3 === 0 && i > ${width} && { beside: made[i - ${width} - 1] }) }
  made.push(asset('t/' + i, {
    inputs,
    // A process that is killed is an attempt that failed, and chance may hit the same task again and again.
    retry: { attempts: 20, initial: '10ms', max: '50ms' },
    async run({ attempt, runId, ...values }) {
      await sleep(Math.random() * ${2 * taskMs})
      // Every seventh task fails the first time its code gets to its end.
      if (i % 7 === 0 && attempt === 1) throw new Error('not yet')
      return { attempt, count: 1 + (values.above?.count ?? 0) + (values.beside?.count ?? 0) }
    },
  }))
}
export const all = made
`,
  )
  return dir
}

/** What each task must have made in the end, whatever happened on the way. */
export function expectedCounts({ tasks, width }: CrashProject): number[] {
  const counts: number[] = []
  for (let i = 0; i < tasks; i++) {
    const above = i < width ? 0 : (counts[i - width] as number)
    const beside = i >= width && i % 3 === 0 && i > width ? (counts[i - width - 1] as number) : 0
    counts.push(1 + above + beside)
  }
  return counts
}
