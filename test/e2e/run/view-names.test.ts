import { expect, test } from 'vitest'
import { projectOf } from '../support/project.ts'

const ASSETS = `import { table } from 'servo-flow'
import { z } from 'zod'
export const files = table('files', {
  schema: z.object({ 'servo file': z.string(), filename: z.string() }),
  run: () => [{ 'servo file': 'a', filename: 'b' }],
})
export const own = table('servo_data', { schema: z.object({ id: z.number() }), run: () => [{ id: 1 }] })
`

test('names that servo query uses itself do not stand in the way of assets and columns', async () => {
  const project = projectOf({ 'assets/all.ts': ASSETS })
  expect((await project.servo('run', '*', '--quiet')).code).toBe(0)
  expect(await project.json('query', 'select * from files')).toEqual([{ 'servo file': 'a', filename: 'b' }])
  expect(await project.json('query', 'select * from "asset/servo_data"')).toEqual([{ id: 1 }])
  const plain = await project.servo('query', 'select * from servo_data')
  expect(plain).toMatchObject({ code: 2, stderr: expect.stringContaining('Did you mean "asset/servo_data"?') })
  expect(plain.stderr).toContain('table servo_data not found')
})
