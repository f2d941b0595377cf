import { expect, test } from 'vitest'
import { projectOf } from '../support/project.ts'
import { lacksTerminal, Terminal } from '../support/terminal.ts'

const ASSETS = `import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { asset, daily } from 'servo-flow'
const days = daily({ start: '2025-01-01', end: '2025-01-31' })
export const parts = asset('parts', {
  partitions: days,
  async run({ partition, signal }) {
    console.log('looking for go')
    while (!existsSync('go')) await sleep(20, undefined, { signal })
    if (partition.key === '2025-01-07' && !existsSync('repaired')) throw new Error('no such column')
  },
})
`

// biome-ignore lint/suspicious/noControlCharactersInRegex: escapes are what it finds.
const MOVES = /\x1b\[\d*[AJ]/

test.skipIf(lacksTerminal)(
  'on a terminal servo run draws a few lines in place; in the end the failures stand there with the next command, and no line per task',
  async () => {
    const project = projectOf({ 'assets/all.ts': ASSETS })
    const run = new Terminal(['run', 'parts', '--partition', '*', '--concurrency', '4'], project.dir)
    await run.shows(/^run_\w{8} {2}0\/30 done {2}4 running {2}[\d.]+ m?s$/)
    await run.shows(/^ +[\d.]+ m?s {2}parts\[2025-01-01\] {2}looking for go$/)
    expect(run.screen.length, run.screen.join('\n')).toBeLessThan(9)
    project.write('go')
    expect(await run.ended).toBe(1)
    const screen = run.screen.join('\n')
    expect(screen).toMatch(/\n {2}failed +[\d.]+ m?s {2}parts\[2025-01-07\] {2}no such column\n/)
    expect(screen).toMatch(
      /\nfailed {2}run_\w{8} {2}29 succeeded, 1 failed in .*\n {2}parts\[2025-01-07\]\n {4}no such column\n/,
    )
    expect(screen).toMatch(/servo runs logs run_\w{8}\n.*servo runs rerun run_\w{8}\n$/)
    expect(screen).not.toMatch(/running|succeeded +\d|looking for go/)

    // What took so long before will take about as long again. Ctrl-C cancels what runs here.
    project.remove('go')
    const again = new Terminal(['run', 'parts', '--partition', '2025-01-01'], project.dir)
    await again.shows(/^run_\w{8} {2}0\/1 done {2}1 running/)
    await again.shows(/parts\[2025-01-01\] {2}usually [\d.]+ m?s {2}looking for go$/)
    again.type('\u0003')
    await again.shows(/^cancelling run_\w{8}; press Ctrl-C again to exit at once/)
    expect(await again.ended).toBe(130)
    expect(again.screen.join('\n')).toMatch(/\ncancelled {2}run_\w{8} {2}1 task in /)

    // Plain lines where nobody watches, or nobody wants anything else.
    project.write('go')
    for (const env of [{ NO_COLOR: '1' }, { TERM: 'dumb' }, { CI: 'true' }]) {
      const plain = new Terminal(['run', 'parts', '--failed'], project.dir, env)
      expect(await plain.ended).toBe(1)
      expect(plain.screen.join('\n')).toMatch(/\n {2}failed +[\d.]+ m?s {2}parts/)
      expect(plain.written, 'the cursor stays where it is').not.toMatch(MOVES)
    }
  },
)
