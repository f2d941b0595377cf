import { expect, test } from 'vitest'
import { projectOf } from './support/project.ts'
import { until } from './support/until.ts'

/** Each attempt says that it began, and ends when it may. */
const assets = `import { existsSync, writeFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { asset } from 'servo-flow'
const made = ['queue', 'skip', 'replace'].map((overlap) =>
  asset(overlap, {
    overlap,
    async run({ runId, signal }) {
      writeFileSync(\`began-\${overlap}-\${runId}\`, '')
      while (!existsSync(\`go-\${overlap}\`)) await setTimeout(10, undefined, { signal })
      return 1
    },
  }),
)
export default [...made, asset('report', { deps: ['skip'], run: () => 1 })]
`

test('[D8] runs of one asset wait for each other, are skipped or replace each other, as it says, and why and runs show say so', async () => {
  const project = projectOf({ 'assets/all.ts': assets })
  await project.dev()
  const { runs } = await project.client()
  const ask = async (...selection: string[]) => (await runs.request({ select: selection }, 'ada')).run_id
  const began = (name: string, run: string) => until(() => project.has(`began-${name}-${run}`), `${name} of ${run}`)
  const ended = async (run: string, state: string) =>
    until(async () => (await runs.get(run)).run.state === state, `${run} ${state}`)
  const shown = async (...args: string[]) => (await project.servo(...args)).stdout

  const [queue1, skip1, replace1] = [await ask('queue'), await ask('skip'), await ask('replace')]
  await Promise.all([began('queue', queue1), began('skip', skip1), began('replace', replace1)])

  const queue2 = await ask('queue')
  expect(await shown('why', 'run', queue2)).toContain(`queue waits for ${queue1}, which is materializing it (overlap)`)
  expect(project.has(`began-queue-${queue2}`)).toBe(false)

  const skipped = await project.servo('run', 'skip', 'report')
  expect(skipped.code).toBe(0)
  expect(skipped.stdout).toMatch(new RegExp(`skipped +skip  ${skip1} was making it \\(overlap: skip\\)`))
  const [skip2] = await runs.list({ limit: 1 })
  const said = await shown('runs', 'show', skip2?.run_id ?? '')
  expect(said).toMatch(/^succeeded .*2 skipped/)
  expect(said).toMatch(/skipped +report +because of skip/)
  const why = await shown('why', 'run', skip2?.run_id ?? '')
  expect(why).toContain(`skip was skipped: ${skip1} was materializing it (overlap: skip)`)
  expect(why).toContain('1 task was skipped because of skip')

  const replace2 = await ask('replace')
  await ended(replace1, 'CANCELLED')
  await began('replace', replace2)
  expect(await shown('why', 'run', replace1)).toMatch(new RegExp(`asset:replace cancelled it at .*: replaced by ${replace2}`))

  for (const name of ['queue', 'skip', 'replace']) project.write(`go-${name}`)
  for (const run of [queue1, queue2, skip1, replace2]) await ended(run, 'SUCCEEDED')
  expect(project.has(`began-queue-${queue2}`)).toBe(true)
  await ended(await ask('skip', 'report'), 'SUCCEEDED')
  expect((await runs.list({ limit: 1 }))[0]).toMatchObject({ tasks_succeeded: 2 })
})
