import { expect, test } from 'vitest'
import { projectOf } from '../support/project.ts'
import { shell } from '../support/servo.ts'

const ASSETS = `import { asset, keys, run, schedule, sensor, webhook } from 'servo-flow'
import { z } from 'zod'
export const orders = asset('raw/orders', { run: () => 1 })
export const regions = asset('raw/regions', { partitions: keys(['eu:north', 'eu:south', 'us']), run: () => 1 })
export const nightly = schedule('nightly', { cron: '0 5 * * *', select: [orders] })
export const weekly = schedule('weekly', { cron: '0 5 * * MON', select: [orders] })
export const inbox = sensor.push('inbox', {
  source: webhook({ path: 'inbox', verify: 'none', schema: z.object({ id: z.number() }) }),
  on: ({ id }) => run(orders, { key: String(id) }),
})
`

/** Completes a line as bash does, and prints what it would offer, sorted, on one line. */
const TAB = `
source <(servo completion bash)
complete -p servo
tab() {
  COMP_LINE=$1 COMP_POINT=\${#1}
  read -ra COMP_WORDS <<< "$1"
  [[ $1 == *' ' ]] && COMP_WORDS+=('')
  COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
  _servo_completion
  printf '%s\\n' "\${COMPREPLY[@]}" | sort | paste -sd' '
}
`
const tabs = async (dir: string, ...lines: readonly string[]): Promise<string[]> => {
  const { stdout, stderr } = await shell(`${TAB}${lines.map((line) => `tab ${JSON.stringify(line)}`).join('\n')}`, dir)
  expect(stderr).toBe('')
  const [registered, ...offered] = stdout.trimEnd().split('\n')
  expect(registered).toBe('complete -F _servo_completion servo')
  return offered
}

test('bash completes commands, flags, assets, partitions, runs, schedules and sensors, from the server or from disk, whatever the code is like', async () => {
  const project = projectOf({ 'assets/all.ts': ASSETS })
  const dev = await project.dev('--run', 'raw/orders')
  await dev.says(/succeeded/)
  const [run] = await (await project.client()).runs.list({ limit: 1 })
  const run_id = run?.run_id ?? ''
  expect(
    await tabs(
      project.dir,
      'servo ru',
      'servo runs re',
      'servo help runs lo',
      'servo run --par',
      'servo assets graph --format ',
      'servo runs list --status ca',
      'servo runs list --json st',
      'servo runs list --json run_id,st',
      'servo runs list --json --si',
      'servo runs list --asset raw/o',
      'servo run raw/o',
      'servo run raw/regions --partition ',
      'servo run raw/regions --partition=eu:s',
      'servo partitions why raw/regions u',
      `servo runs show ${run_id.slice(0, 8)}`,
      'servo schedules pause nightly ',
      'servo why schedule n',
      'servo sensors send ',
    ),
  ).toEqual([
    'run runs',
    'rerun',
    'logs',
    '--partition',
    'dot mermaid',
    'cancelled',
    'started_at state',
    'run_id,started_at run_id,state',
    '--since',
    'raw/orders',
    'raw/orders',
    'eu:north eu:south us',
    // Bash replaces what stands behind the colon.
    'south',
    'us',
    run_id,
    'weekly',
    'nightly',
    'inbox',
  ])

  dev.kill('SIGINT')
  await dev.ended
  project.write('assets/all.ts', 'console.log("loaded"); throw new Error("broken")\n')
  const [assets, partitions, schedules, ...nothing] = await tabs(
    project.dir,
    'servo assets show raw/',
    'servo run raw/regions --partition eu',
    'servo schedules show ',
    'servo run raw/orders --key ',
    `servo runs show --project ${project.file('nowhere')} `,
  )
  expect({ assets, partitions, schedules, nothing }).toEqual({
    assets: 'raw/orders raw/regions',
    partitions: 'eu:north eu:south',
    schedules: 'nightly weekly',
    nothing: [],
  })
})
