import { expect, test } from 'vitest'
import { descendants, isAlive } from '../support/processes.ts'
import { projectOf } from '../support/project.ts'
import { until } from '../support/until.ts'

const ASSET = `import { asset } from 'servo-flow'
export const orders = asset('orders', { run: () => 1 })
`
const SENSOR = `import { run, sensor, webhook } from 'servo-flow'
import { z } from 'zod'
import { orders } from './orders.ts'
export const hook = sensor.push('hook', {
  source: webhook({ path: 'hook', verify: 'none', schema: z.unknown() }),
  on: () => run(orders),
})
`

/** `servo dev` keeps one process for attempts. */
const ATTEMPTS = 1

test.runIf(process.platform === 'linux')(
  '[A39] a process for evaluations is there while the project has sensors, and ends with the server',
  async () => {
    const project = projectOf({ 'assets/orders.ts': ASSET })
    const dev = await project.dev()
    const processes = () => descendants(dev.pid)
    /** While code is loaded, a process with the old code is there beside the one with the new. */
    const loads = async (change: () => void): Promise<void> => {
      const before = dev.shown.length
      change()
      await dev.says(/ loaded {2}/, before)
    }
    await until(() => processes().length === ATTEMPTS, 'the process for attempts')
    await loads(() => project.write('assets/sensors.ts', SENSOR))
    await until(() => processes().length === ATTEMPTS + 1, 'a process for evaluations')
    await loads(() => {
      project.remove('assets/sensors.ts')
      project.write('assets/orders.ts', `${ASSET}\n`)
    })
    await until(() => processes().length === ATTEMPTS, 'the process for evaluations to end')
    await loads(() => project.write('assets/sensors.ts', SENSOR))
    await until(() => processes().length === ATTEMPTS + 1, 'another process for evaluations')
    const last = processes()
    dev.kill('SIGINT')
    await dev.ended
    expect(last.filter(isAlive)).toEqual([])

    const next = await project.dev()
    await until(() => descendants(next.pid).length === ATTEMPTS + 1, 'all processes')
    const orphans = descendants(next.pid)
    next.kill('SIGKILL')
    await next.ended
    await until(() => !orphans.some(isAlive), 'all processes to end with a server that was killed')
  },
)

test.runIf(process.platform === 'linux')('without automation nothing is evaluated, so there is no process for it', async () => {
  const project = projectOf({ 'assets/orders.ts': ASSET, 'assets/sensors.ts': SENSOR })
  const dev = await project.dev('--no-automation')
  await until(() => descendants(dev.pid).length === ATTEMPTS, 'the process for attempts')
  expect((await project.servo('run', 'orders')).code).toBe(0)
  expect(descendants(dev.pid)).toHaveLength(ATTEMPTS)
})
