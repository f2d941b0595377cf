import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'

test('V8 knows the setting that keeps the heap small: it would complain on the standard error, and go on without it', () => {
  const said = (program: string): string =>
    spawnSync(process.execPath, ['--input-type=module', '--eval', program], { encoding: 'utf8' }).stderr
  const memory = JSON.stringify(new URL('./memory.ts', import.meta.url).href)
  expect(said(`import { keepHeapSmall } from ${memory}; keepHeapSmall()`)).toBe('')
  expect(said(`import { setFlagsFromString } from 'node:v8'; setFlagsFromString('--no-such-setting')`)).not.toBe('')
})
