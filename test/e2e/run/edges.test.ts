import { afterAll, expect, test } from 'vitest'
import { TestProject } from '../support/project.ts'
import { shell } from '../support/servo.ts'

const ASSETS = `import { asset, command, keys } from 'servo-flow'

export const many = asset('many', {
  partitions: keys(Array.from({ length: 12 }, (_, i) => 'k' + i)),
  run({ partition }) {
    console.log('hello from ' + partition.key)
    if (partition.key === 'k11') throw new Error('the last one fails')
  },
})
export const long = command('long', { run: ['sh', '-c', 'echo ' + 'a'.repeat(300)] })
`

const project = new TestProject({ 'assets/all.ts': ASSETS })
afterAll(() => project.end())

test('servo run goes on when its reader has gone, and its exit code is that of the run', async () => {
  const { stdout } = await shell(
    `servo run many long --partition '*' --concurrency 1 2>&1 | head -3; echo "\${PIPESTATUS[0]}"`,
    project.dir,
  )
  expect(stdout).toMatch(/^(?:.*\n){3}1\n$/)
  expect(await project.json('runs', 'list')).toMatchObject([{ state: 'FAILED', tasks_succeeded: 12, tasks_failed: 1 }])
  project.write('assets/broken.ts', 'export const x = (\n')
  expect((await shell('servo check | true; echo "${PIPESTATUS[0]}"', project.dir)).stdout).toBe('1\n')
  project.remove('assets/broken.ts')
})
