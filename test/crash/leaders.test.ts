import { describe, expect, test } from 'vitest'
import { projectOf } from '../e2e/support/project.ts'
import { beginnings, ends, leadersInOrder, manifestsOf, TRACED } from '../e2e/support/traced.ts'
import { until } from '../e2e/support/until.ts'

/** The acceptance asks for 200; a round is a handful of processes, so `npm test` makes do with one. */
const ROUNDS = Number(process.env['SERVO_RACE_ROUNDS'] ?? 1)

const TASKS = 3
const SHORT = `${TRACED}
export const all = Array.from({ length: ${TASKS} }, (_, i) => traced('t/' + i, 60))
`

describe('processes that race for the folder of a server that was killed', { timeout: 120_000 + ROUNDS * 60_000 }, () => {
  test('[E1] are servers: one gets it, and the others are told which', async () => {
    const project = projectOf({ 'assets/short.ts': SHORT })
    let before = await project.dev()
    for (let round = 0; round < ROUNDS; round++) {
      before.kill('SIGKILL')
      await before.ended
      const servers = Array.from({ length: 8 }, () => project.begin(['dev', '--port', '0']))
      // Whoever goes on says that it is ready; whoever does not has gone.
      await until(() => servers.every(({ isOver, shown }) => isOver || shown.includes('ready in')), 'everybody to know')
      const ready = servers.filter(({ shown }) => shown.includes('ready in'))
      expect(ready, `round ${round}`).toHaveLength(1)
      before = ready[0] as (typeof servers)[number]
      for (const other of servers.filter((server) => server !== before)) {
        const { code, stderr } = await other.ended
        expect([code, stderr]).toEqual([2, expect.stringContaining(`this project is already running: process ${before.pid}`)])
      }
    }
  })

  test('[E1][I5] are servers and runs: never do two lead at a time, one server stays, and everything asked for is done once', async () => {
    const project = projectOf({ 'assets/short.ts': SHORT })
    for (let round = 0; round < ROUNDS; round++) {
      const before = await project.dev()
      before.kill('SIGKILL')
      await before.ended
      const servers = Array.from({ length: 2 + Math.floor(Math.random() * 3) }, () => project.begin(['dev', '--port', '0']))
      const runs = Array.from({ length: 2 + Math.floor(Math.random() * 3) }, (_, i) =>
        project.begin(['run', '*', '--json', '--key', `${round}-${i}`]),
      )
      const outcomes = await Promise.all(runs.map((run) => run.ended))
      expect(outcomes.map(({ code, stderr }) => [code, code === 0 ? '' : stderr])).toEqual(runs.map(() => [0, '']))
      // Of the servers one leads in the end; each of the others was told who does, and has gone.
      await until(() => servers.filter((server) => !server.isOver).length <= 1, 'the other servers to go')
      const staying = servers.filter((server) => !server.isOver)
      expect(staying, servers.map(({ shown }) => shown).join('')).toHaveLength(1)
      const [leader] = staying
      await leader?.says(/ready in/)
      for (const other of servers.filter((server) => server !== leader)) {
        const { code, stdout, stderr } = await other.ended
        expect([code, stdout], stderr).toEqual([2, ''])
        // It may have asked a run to make way first, and been overtaken.
        expect(stderr).toMatch(/^error: this project is already running: process \d+/m)
      }
      leader?.kill('SIGINT')
      await leader?.ended
    }
    // Nobody led, made way for another and led again: with one at a time each has its turn once.
    const leaders = leadersInOrder(project)
    expect(leaders).toEqual([...new Set(leaders)])
    const tasks = (lines: { run: string; key: string }[]): string[] => lines.map(({ run, key }) => `${run} ${key}`).sort()
    expect(tasks(beginnings(project)), JSON.stringify(beginnings(project))).toEqual([...new Set(tasks(beginnings(project)))])
    expect(tasks(ends(project))).toEqual(tasks(beginnings(project)))
    // Each manifest is of the epoch before or a higher one, and an epoch has one holder.
    const manifests = manifestsOf(project)
    const epochs = manifests.map(({ epoch }) => epoch)
    expect(epochs).toEqual([...epochs].sort((a, b) => a - b))
    const holders = new Map(manifests.map(({ epoch, compactor }) => [epoch, compactor]))
    expect(manifests.filter(({ epoch, compactor }) => holders.get(epoch) !== compactor)).toEqual([])
    expect(await project.servo('verify', '.servo')).toMatchObject({ code: 0 })
  })
})
