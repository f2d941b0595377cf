import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Disk, nodeDisk } from './disk.ts'
import { walk } from './walk.ts'

describe('walking a folder', () => {
  let root: string
  let read: string[]

  /** A disk that remembers which folders were read. */
  const watched: Disk = {
    ...nodeDisk,
    readdir(path, options) {
      read.push(path.slice(root.length + 1))
      return nodeDisk.readdir(path, options)
    },
  }

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'servo-walk-'))
    read = []
  })

  afterEach(async () => {
    await rm(root, { recursive: true })
  })

  async function fill(paths: Iterable<string>): Promise<void> {
    for (const path of paths) {
      await mkdir(dirname(join(root, path)), { recursive: true })
      await writeFile(join(root, path), path)
    }
  }

  async function walked(prefix: string, after = '', limit = Number.POSITIVE_INFINITY): Promise<string[]> {
    const paths: string[] = []
    for await (const { path } of walk(watched, root, prefix, after)) {
      paths.push(path)
      if (paths.length === limit) break
    }
    return paths
  }

  const days = ['01', '02', '03', '04'].map((day) => `ledger/2025-01-${day}`)

  it('reads only folders under the prefix that can hold something after the position', async () => {
    await fill(days.flatMap((day) => [`${day}/a`, `${day}/b`]).concat('state/x/y', 'a/b'))
    expect(await walked('ledger/', `${days[2]}/a`)).toEqual([`${days[2]}/b`, `${days[3]}/a`, `${days[3]}/b`])
    expect(read).toEqual(['ledger/', `${days[2]}/`, `${days[3]}/`])
  })

  it('reads nothing when the position is past the prefix', async () => {
    await fill(days.map((day) => `${day}/a`))
    expect(await walked('ledger/', 'manifests/1')).toEqual([])
    expect(read).toEqual([])
  })

  it('reads a folder only when the reader gets there', async () => {
    await fill(days.map((day) => `${day}/a`))
    expect(await walked('', '', 2)).toEqual([`${days[0]}/a`, `${days[1]}/a`])
    expect(read).toEqual(['', 'ledger/', `${days[0]}/`, `${days[1]}/`])
  })

  it('agrees with sorting whole paths, for any paths, prefix and position', async () => {
    // Few characters around the slash in ASCII, so that names often begin alike and a folder meets a file.
    const segment = fc.stringMatching(/^[0=a-][.0=a-]{0,2}$/)
    const path = fc.array(segment, { minLength: 1, maxLength: 4 }).map((segments) => segments.join('/'))
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(path, { maxLength: 30 }),
        fc.option(path, { nil: '' }),
        path,
        async (candidates, after, under) => {
          const paths = candidates.filter((one) => !candidates.some((other) => other.startsWith(`${one}/`))).sort()
          await rm(root, { recursive: true })
          await mkdir(root)
          await fill(paths)
          for (const prefix of ['', `${under.split('/')[0]}/`, `${under}/`]) {
            expect(await walked(prefix, after)).toEqual(paths.filter((one) => one.startsWith(prefix) && one > after))
          }
        },
      ),
      { numRuns: 100 },
    )
  })
})
