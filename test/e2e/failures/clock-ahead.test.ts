import { describe, expect, test } from 'vitest'
import { projectOf, type TestProject } from '../support/project.ts'
import { lacksWrongClock, wrongClock } from '../support/wrong-clock.ts'

const ASSETS = `import { readFileSync } from 'node:fs'
import { asset } from 'servo-flow'
const said = () => readFileSync('said', 'utf8')
/** Too large for the ledger, so that it is a file. */
const large = () => ({ said: said(), filling: 'x'.repeat(5_000) })
export const above = asset('above', { run: said })
export const below = asset('below', { inputs: { above }, run: ({ above }) => \`from \${above}\` })
export const big = asset('big', { run: large })
export const few = asset('few', { keep: { versions: 2 }, run: large })
`

/** A project whose assets return what it was told last. */
class Said {
  readonly project: TestProject = projectOf({ 'assets/said.ts': ASSETS })

  /** Materializes assets with a value, by a clock that is wrong by so much. */
  async run(value: string, assets: readonly string[], offset = ''): Promise<void> {
    this.project.write('said', value)
    const { project } = this
    const ran = await (offset === ''
      ? project.servo('run', ...assets)
      : project.begin(['run', ...assets], wrongClock(offset)).ended)
    expect(ran, `${ran.stdout}${ran.stderr}`).toMatchObject({ code: 0 })
  }

  /** Now, by a clock that was a year ahead, and twice more by the right one. */
  async afterClockAhead(...assets: readonly string[]): Promise<void> {
    await this.run('first', assets)
    await this.run('ahead', assets, '+365d')
    await this.run('third', assets)
    await this.run('fourth', assets)
  }

  async shown(asset: string): Promise<string> {
    const { stdout, stderr, code } = await this.project.servo('show', asset)
    return code === 0 ? stdout.replace(/x{9,}/, '') : stderr
  }

  async statusOf(asset: string): Promise<string> {
    return (await this.project.json('partitions', 'why', asset)).status
  }

  /** What was stored, in the order in which it was made, with why it was removed. */
  async kept(asset: string): Promise<readonly unknown[]> {
    const rows = await this.project.query(
      `SELECT removed_reason FROM value_versions WHERE asset_key = '${asset}' ORDER BY event_id`,
    )
    return rows.map(({ removed_reason }) => removed_reason)
  }
}

describe.skipIf(lacksWrongClock)('after a process ran by a clock that was a year ahead', { timeout: 120_000 }, () => {
  test('[P20] what is made next is shown, queried and read by what is made from it, and that is stale until it is made again', async () => {
    const said = new Said()
    await said.afterClockAhead('above')
    expect(await said.shown('above')).toContain('fourth')
    expect(await said.project.query('SELECT last_materialization_at < now() AS past FROM partition_status')).toEqual([
      { past: true },
    ])
    expect((await said.project.servo('query', 'SELECT * FROM above')).stdout).toContain('fourth')
    await said.run('', ['below'])
    expect(await said.shown('below')).toContain('from fourth')
    expect(await said.statusOf('below')).toBe('MATERIALIZED')

    await said.run('fifth', ['above'])
    expect(await said.statusOf('below')).toBe('STALE')
    await said.run('', ['below'])
    expect(await said.statusOf('below')).toBe('MATERIALIZED')
    expect(await said.shown('below')).toContain('from fifth')
    expect(await said.project.servo('verify', '.servo')).toMatchObject({ code: 0 })
  })

  test('[P20] what is made from an asset is stale, although the clock that was ahead made it', async () => {
    const said = new Said()
    await said.run('first', ['above', 'below'])
    await said.run('ahead', ['above', 'below'], '+365d')
    await said.run('third', ['above'])
    expect(await said.statusOf('below')).toBe('STALE')
  })

  test('[P20] a wipe and a report count, and so does what is made after them', async () => {
    const said = new Said()
    await said.run('ahead', ['above'], '+365d')
    expect((await said.project.servo('partitions', 'wipe', 'above', '--yes')).code).toBe(0)
    expect(await said.statusOf('above')).toBe('NEVER_MATERIALIZED')
    await said.run('second', ['above'])
    expect(await said.statusOf('above')).toBe('MATERIALIZED')
    expect(await said.shown('above')).toContain('second')
    expect((await said.project.servo('partitions', 'wipe', 'above', '--yes')).code).toBe(0)
    expect(await said.statusOf('above')).toBe('NEVER_MATERIALIZED')
  })

  test('[P20] purge removes what was made before, and never what was made last', async () => {
    const said = new Said()
    await said.afterClockAhead('big')
    const purged = await said.project.servo('partitions', 'purge', 'big', '--yes')
    expect(purged, purged.stderr).toMatchObject({ code: 0 })
    expect(await said.shown('big')).toContain('fourth')
    expect(await said.kept('big')).toEqual(['purged', 'purged', 'purged', null])
  })

  test('[P20] retention keeps the versions that were made last', async () => {
    const said = new Said()
    await said.afterClockAhead('few')
    const collected = await said.project.servo('gc', '--yes')
    expect(collected, collected.stderr).toMatchObject({ code: 0 })
    expect(await said.shown('few')).toContain('fourth')
    expect(await said.kept('few')).toEqual(['expired', 'expired', null, null])
  })
})
