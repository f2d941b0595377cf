import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { projectOf } from '../support/project.ts'
import { until } from '../support/until.ts'

/** Writes down each day that it made. One day fails until somebody repairs it; those of February wait until they are let go. */
const DAYS = `import { appendFileSync, existsSync } from 'node:fs'
import { asset, daily } from 'servo-flow'
export const days = asset('days', {
  partitions: daily({ start: '2024-01-01' }),
  backfill: { chunk: 5 },
  run: async ({ partition }) => {
    do await new Promise((resolve) => setTimeout(resolve, 20))
    while (partition.key >= '2024-02-01' && !existsSync('go'))
    if (partition.key === '2024-01-07' && !existsSync('repaired')) throw new Error('no data')
    appendFileSync('made', partition.key + '\\n')
  },
})
`

interface Shown {
  readonly backfill_id: string
  readonly state: string
  readonly planned_chunks: number
}

test('a backfill is previewed, created, waited for and retried by commands; kill -9 loses no partition and repeats no chunk', async () => {
  const project = projectOf({ 'assets/a.ts': DAYS })
  const made = (): string[] => {
    const file = join(project.dir, 'made')
    return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
  }
  const dev = await project.dev()
  await dev.says(/ready/i)
  const range = ['--start', '2024-01-01', '--end', '2024-02-29']
  const preview = (await project.servo('backfills', 'preview', 'days', ...range)).stdout
  expect(preview).toContain('60 partitions in 12 runs')
  const wrong = await project.servo('backfill', 'create', 'days')
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('which partitions?')])
  const created = (await project.json('backfills', 'create', 'days', ...range, '--key', 'winter')) as Shown
  expect(created).toMatchObject({ created: true, total_partitions: 60, total_chunks: 12 })
  const { backfill_id: id } = created

  await until(() => made().length >= 8, 'the first days are made')
  expect(await project.servo('backfills', 'change', id, '--concurrency', '4')).toMatchObject({
    code: 0,
    stdout: `${id}: backfill changed\n`,
  })
  dev.kill('SIGKILL')
  await dev.ended
  writeFileSync(join(project.dir, 'go'), '')
  const next = await project.dev()
  await next.says(/ready/i)
  const again = await project.servo('backfills', 'create', 'days', ...range, '--key', 'winter', '--wait')
  expect([again.code, again.stdout]).toEqual([1, expect.stringContaining(`${id}  failed  60 of 60 partitions, 1 failed`)])
  const shown = await project.asked('backfills', 'show', id)
  expect(shown.stdout).toMatch(/failed +days\[2024-01-07\]\n/)
  expect(shown.stdout).toContain('0 active, at most 4')
  const why = await project.asked('why', 'backfill', id)
  expect(why.stdout).toMatch(/failed at .*: days\[2024-01-07\] failed/)
  expect(why.stdout).toContain(`retry what failed: servo backfills retry-failed ${id}`)
  const days = Array.from({ length: 60 }, (_, i) => new Date(Date.UTC(2024, 0, 1 + i)).toISOString().slice(0, 10))
  expect([...new Set(made())].sort()).toEqual(days.filter((day) => day !== '2024-01-07'))
  const chunks = () =>
    project.query(`select count(*) n, count(distinct run_id) runs from backfill_chunks where backfill_id = '${id}'`)
  await until(async () => Number((await chunks())[0]?.['n']) >= 12, 'all chunks are in the published tables')
  expect(await chunks()).toMatchObject([{ n: 12, runs: 12 }])

  writeFileSync(join(project.dir, 'repaired'), '')
  const before = made().length
  await next.says(new RegExp(`${id} {2}failed {2}60 of 60 partitions, 1 failed`))
  const retried = await project.servo('backfills', 'retry-failed', id, '--wait')
  expect([retried.code, retried.stdout]).toEqual([0, expect.stringContaining('succeeded  1 of 1 partition\n')])
  expect(made().slice(before)).toEqual(['2024-01-07'])
  const { backfills } = (await project.json('backfills', 'list')) as { backfills: Shown[] }
  expect(backfills.map(({ state }) => state)).toEqual(['SUCCEEDED', 'FAILED'])
  const nothing = await project.servo('backfills', 'create', 'days', ...range, '--only', 'missing')
  expect([nothing.code, nothing.stdout]).toEqual([0, expect.stringContaining('nothing to do')])
  const late = await project.servo('backfills', 'resume', id)
  expect([late.code, late.stderr]).toEqual([2, expect.stringContaining(`${id} has failed`)])
  next.kill('SIGINT')
  const lines = (await next.ended).stdout
  expect(lines, 'the runs of a backfill have no lines of their own').not.toMatch(/tasks?: days/)
})
