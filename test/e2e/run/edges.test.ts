import { afterAll, expect, test } from 'vitest'
import { TestProject } from '../support/project.ts'
import { shell } from '../support/servo.ts'

const ASSETS = `import { asset, command, keys, table } from 'servo-flow'
import { z } from 'zod'

export const many = asset('many', {
  partitions: keys(Array.from({ length: 12 }, (_, i) => 'k' + i)),
  run({ partition }) {
    console.log('hello from ' + partition.key)
    if (partition.key === 'k11') throw new Error('the last one fails')
  },
})
export const total = table('web/all', {
  schema: z.object({ id: z.bigint(), partition: z.string() }),
  inputs: { many: many.all() },
  run: () => [],
})
export const stubborn = command('stubborn', {
  run: ['sh', '-c', "trap '' TERM; echo waiting >&2; while true; do sleep 0.1; done"],
})
export const noisy = command('noisy', { run: ['sh', '-c', 'seq -f "line %g" 8 >&2; exit 3'] })
export const fresh = asset('fresh', { partitions: keys(['a', 'b']), run: () => 1 })
export const long = command('long', { run: ['sh', '-c', 'echo ' + 'a'.repeat(300)] })
`

const project = new TestProject({ 'assets/all.ts': ASSETS })
afterAll(() => project.end())

test('servo run goes on when its reader has gone, and its exit code is that of the run', async () => {
  const { stdout } = await shell(`servo run many long --partition '*' 2>&1 | head -3; echo "\${PIPESTATUS[0]}"`, project.dir)
  expect(stdout).toMatch(/^(?:.*\n){3}1\n$/)
  expect(await project.json('runs', 'list')).toMatchObject([{ state: 'FAILED', tasks_succeeded: 12, tasks_failed: 1 }])
  // Neither does a full disk stop it. A command that only answers has failed then.
  const full = await shell('servo run long > /dev/full; echo $?; servo runs list > /dev/full; echo $?', project.dir)
  expect(full.stdout).toBe('0\n3\n')
  expect(full.stderr).toMatch(
    /^warning: the output cannot be written: ENOSPC.*\nerror: the output cannot be written: ENOSPC.*\n$/,
  )
  expect(await project.json('runs', 'list', '--limit', '1')).toMatchObject([{ state: 'SUCCEEDED' }])
  project.write('assets/broken.ts', 'export const x = (\n')
  expect((await shell('servo check | true; echo "$PIPESTATUS"', project.dir)).stdout).toBe('1\n')
  project.remove('assets/broken.ts')
})

test('a program that Servo killed is not said to have run out of memory, and output is not repeated', async () => {
  const run = project.begin(['run', 'stubborn', 'noisy'])
  await run.says(/waiting/)
  await run.says(/failed .*noisy/)
  run.kill('SIGINT')
  expect(await run.ended).toMatchObject({
    code: 130,
    stdout: expect.stringContaining('sh did not stop when the run was cancelled, so it was killed'),
  })
  // All of it while the program runs, and its end below the run.
  expect(['line 1', 'line 4', 'line 5', 'line 8'].map((line) => run.shown.split(`${line}\n`).length - 1)).toEqual([1, 1, 2, 2])
})

test('the command that a hint offers works as it is', async () => {
  const hints = [
    await project.servo('show', 'web/all'),
    await project.servo('query', 'from "web/all"'),
    await project.servo('query', 'from fresh'),
  ].map(({ stderr }) => /hint: Materialize it: (.*)\n/.exec(stderr)?.[1])
  expect(hints).toEqual([
    `servo run '+key:"web/all"' --missing`,
    `servo run '+key:"web/all"' --missing`,
    'servo run fresh --missing',
  ])
  expect((await shell('servo run *', project.dir)).stderr).toMatch(/hint: .*Quote it: servo run '\*'\n$/)
  const ran = await shell(`${hints[0]} --dry-run && ${hints[2]} --dry-run`, project.dir)
  expect(ran).toMatchObject({ code: 0, stderr: '' })
})
