import { expect, test } from 'vitest'
import { describeProject } from '../project/describe.ts'
import { asset } from './asset.ts'
import { defineConfig } from './config.ts'
import type { Keep } from './keep.ts'

const config = (keep?: unknown) =>
  defineConfig({ project: 'shop', dirs: ['assets'], ...(keep !== undefined && { keep: keep as Keep }) })
const made = (key: string, keep?: unknown) => asset(key, { ...(keep !== undefined && { keep: keep as Keep }), run: () => 1 })

test('[K1] an asset keeps what it says, or else what the project says, or else everything', () => {
  const assets = [made('own', { versions: 3 }), made('all', 'all'), made('other', { days: 7 }), made('none')]
  const kept = (keep?: unknown) =>
    Object.fromEntries(
      describeProject(assets, { config: config(keep) }).assets.map(({ asset_key, policies }) => [
        asset_key,
        policies?.['keep'],
      ]),
    )
  expect(kept({ versions: 5, days: 30 })).toEqual({
    own: { versions: 3, days: 0 },
    other: { versions: 1, days: 7 },
    none: { versions: 5, days: 30 },
  })
  expect(kept()).toEqual({ own: { versions: 3, days: 0 }, other: { versions: 1, days: 7 } })
})

test.each([
  [{}, 'says neither `versions` nor `days`'],
  [{ versions: 0 }, '`keep.versions` of report must be a whole number from 1 to 1000, not 0'],
  [{ versions: 2.5 }, 'not 2.5'],
  [{ versions: '3' }, 'not "3"'],
  [{ days: -1 }, '`keep.days` of report must be a whole number from 0 to 36500, not -1'],
  [{ day: 3 }, 'unknown option `day`'],
  ['everything', '`keep` of report cannot be "everything"'],
  [3, '`keep` of report cannot be 3'],
  [[1], '`keep` of report cannot be'],
])('[K1] a project that says keep: %j is refused', (keep, message) => {
  expect(() => made('report', keep)).toThrow(message)
  expect(() => config(keep)).toThrow(message.replace('report', 'the config'))
})
