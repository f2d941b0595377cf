import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { askToConfirm, refuseUnattended } from './confirm.ts'

/** A terminal at which somebody types this and, unless they wait, leaves. */
function terminalWith(typed: string) {
  const input = Object.assign(new PassThrough(), { isTTY: true })
  const output = Object.assign(new PassThrough(), { isTTY: true })
  input.end(typed)
  return { input, output } as unknown as Parameters<typeof askToConfirm>[1]
}

test.each([
  ['y\n', true],
  ['YES\n', true],
  ['\n', false],
  ['n\n', false],
  ['yeah, no\n', false],
  ['', false],
])('to a question %j is %s', async (typed, answer) => {
  expect(await askToConfirm('Continue?', terminalWith(typed))).toBe(answer)
})

test('where nobody sits at a terminal the flag is named that says yes', () => {
  const { output } = terminalWith('')
  const piped = new PassThrough() as unknown as NodeJS.ReadStream
  expect(() => refuseUnattended({ input: piped, output })).toThrow(
    expect.objectContaining({ code: 'confirmation_needed', hint: 'Add --yes to confirm.' }),
  )
})
