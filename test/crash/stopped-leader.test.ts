import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { projectOf } from '../e2e/support/project.ts'
import { beginnings, ends, leadersInOrder, manifestsOf, TRACED } from '../e2e/support/traced.ts'
import { until } from '../e2e/support/until.ts'

/** The acceptance asks for 100; each waits for a lease to expire, so `npm test` makes do with one. */
const ROUNDS = Number(process.env['SERVO_STOP_ROUNDS'] ?? 1)
const LEASE = { SERVO_LEASE_MS: '1000' }

const TASKS = 400
/** A stream: each task waits for the one four before it. */
const STREAM = `${TRACED}
const made = []
for (let i = 0; i < ${TASKS}; i++) made.push(traced('t/' + i, 40, i < 4 ? [] : [made[i - 4]]))
export const all = made
`

describe('a server that is stopped across its lease', { timeout: 60_000 + ROUNDS * 60_000 }, () => {
  test('[E7] begins nothing, publishes nothing and answers nobody once another leads, and ends by itself saying so', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const project = projectOf({ 'assets/stream.ts': STREAM })
      const old = await project.devIn(LEASE)
      const { run_id } = await project.json('run', '*', '--detach')
      await until(() => beginnings(project).length > 0, 'the first task')
      await sleep(Math.random() * 1_500)
      old.kill('SIGSTOP')
      const before = new Set(manifestsOf(project).map(({ compactor }) => compactor))

      const next = await project.devIn(LEASE)
      const takenOver = manifestsOf(project).at(-1)?.number ?? 0
      // On its way while nobody reads it: the kernel has taken the connection.
      const body = JSON.stringify({ select: ['*'], key: 'in flight' })
      const headers = { authorization: `Bearer ${project.token}`, 'content-type': 'application/json' }
      const inFlight = fetch(`${old.url}/api/v1/orchestration/runs`, { method: 'POST', body, headers }).then(
        ({ status }) => status,
        () => 'no answer' as const,
      )
      await sleep(Math.random() * 300)
      old.kill('SIGCONT')
      const { code, stderr } = await old.ended
      expect(stderr).toContain('another process leads this project now')
      expect(code).toBe(3)
      const answer = await inFlight
      if (answer !== 'no answer') expect(answer).toBeGreaterThanOrEqual(400)

      const client = project.clientOf(next)
      await until(async () => (await client.runs.get(run_id)).run['finished_at'] !== null, 'the run to end')
      const { run, tasks } = await client.runs.get(run_id)
      expect(run).toMatchObject({ state: 'SUCCEEDED', tasks_succeeded: TASKS })
      expect(tasks).toHaveLength(TASKS)
      expect(new Set(ends(project).map(({ key }) => key)).size).toBe(TASKS)
      // Under the old one attempts began until it was stopped, under the new one from then on.
      expect(leadersInOrder(project)).toEqual([old.pid, next.pid])
      const later = manifestsOf(project).filter(({ number }) => number > takenOver)
      expect(later.filter(({ compactor }) => before.has(compactor))).toEqual([])
      expect((await client.runs.list({ limit: 10 })).map((each) => each['run_id'])).toEqual([run_id])
      next.kill('SIGINT')
      await next.ended
      expect(await project.servo('verify', '.servo')).toMatchObject({ code: 0 })
    }
  })
})
