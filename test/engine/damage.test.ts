import { beforeAll, describe, expect, test } from 'vitest'
import { partitionStatus } from '../../src/domain/partitions/partition-status.table.ts'
import { runKeyIndex } from '../../src/domain/runs/run-key-index.table.ts'
import { decodeSegment } from '../../src/engine/ledger/segment.ts'
import { decodeManifest } from '../../src/engine/manifest/stored-manifests.ts'
import { isServoError, messageOf } from '../../src/lib/error.ts'
import { filesOf, fullState, kinds } from './full-state.ts'
import { paths, scope, type Workspace } from './workspace.ts'

/** Positions tried in each kind of file; all of them with SERVO_FLIPS=Infinity, which takes minutes. */
const FLIPS = Number(process.env['SERVO_FLIPS'] ?? 15)

/** A few seconds for the positions tried by default, on a machine that has nothing else to do. */
const PATIENCE_MS = Number.isFinite(FLIPS) ? Math.max(120_000, FLIPS * 4_000) : 3_600_000

let small: Workspace
let paged: Workspace
beforeAll(async () => {
  small = await fullState({ paged: false })
  paged = await fullState({ paged: true })
})
const stateWith = (kind: string): Workspace => (kind.startsWith('page') ? paged : small)

/** Positions spread over a file, its first and last bytes included; not the same for every file. */
function* positions(length: number, count: number): Generator<number> {
  for (let i = 0; i < 4 && i < length; i++) yield i
  for (let i = Math.max(4, length - 12); i < length; i++) yield i
  const step = Math.max(1, length / count)
  for (let at = step / 3; at < length; at += step) yield Math.floor(at)
}

const flipped = (bytes: Uint8Array, at: number): Uint8Array => bytes.with(at, bytes[at]! ^ (1 << (at % 8)))

/** Puts other bytes in place for as long as the work takes. */
async function damaged<T>(
  workspace: Workspace,
  path: string,
  bytes: Uint8Array | undefined,
  work: () => Promise<T>,
): Promise<T> {
  const good = (await workspace.store.get(path))!
  if (bytes === undefined) await workspace.store.delete(path)
  else await workspace.store.put(path, bytes)
  try {
    return await work()
  } finally {
    await workspace.store.put(path, good)
  }
}

const named = async (workspace: Workspace): Promise<string[]> => {
  const { ok, problems } = await workspace.verify({ quick: true })
  expect(ok).toBe(problems.length === 0)
  for (const { path, message } of problems) expect(message).toContain(path)
  return problems.map((problem) => problem.path)
}

test('the state under test has a file of every kind and is in order', async () => {
  for (const kind of Object.keys(kinds)) expect(await filesOf(stateWith(kind), kind), kind).not.toEqual([])
  for (const workspace of [small, paged]) expect((await workspace.verify()).problems).toEqual([])
})

describe.each(Object.keys(kinds))('a damaged %s', { timeout: PATIENCE_MS }, (kind) => {
  /** The first and the last of the kind, which for manifests are the oldest and the newest. */
  const sample = async (): Promise<string[]> => {
    const files = await filesOf(stateWith(kind), kind)
    return [...new Set([files[0]!, files.at(-1)!])]
  }

  test('[S5] is named by verify, and nothing else is, whichever bit fell over', async () => {
    const workspace = stateWith(kind)
    for (const path of await sample()) {
      const good = (await workspace.store.get(path))!
      // Pages lie in a larger state, which takes longer to look through.
      for (const at of positions(good.length, kind.startsWith('page') ? FLIPS / 4 : FLIPS)) {
        await damaged(workspace, path, flipped(good, at), async () => {
          expect(await named(workspace), `bit ${at % 8} of byte ${at} of ${good.length} of ${path}`).toEqual([path])
        })
      }
    }
  })

  test('[S5] is named by verify when it was cut off, has something added, is empty, is gone or is another of its kind', async () => {
    const workspace = stateWith(kind)
    const files = await filesOf(workspace, kind)
    const path = files[0]!
    const good = (await workspace.store.get(path))!
    const others = files.length > 1 ? [(await workspace.store.get(files.at(-1)!))!] : []
    const wrong: [string, Uint8Array][] = [
      ['cut off by a byte', good.subarray(0, -1)],
      ['cut in half', good.subarray(0, good.length >> 1)],
      ['with a line end', new Uint8Array([...good, 10])],
      ['twice', new Uint8Array([...good, ...good])],
      ['empty', new Uint8Array()],
      ['all zeros', new Uint8Array(good.length)],
      // A segment under another name is still a segment with all its facts; see below.
      ...(kind === 'segment' || kind === 'copy of the manifest'
        ? []
        : others.map((other): [string, Uint8Array] => ['another', other])),
    ]
    for (const [what, bytes] of wrong) {
      await damaged(workspace, path, bytes, async () => expect(await named(workspace), `${path} ${what}`).toEqual([path]))
    }
    // Nobody misses a manifest before the newest, or the copy, which the next publish writes anew.
    const isMissed = !kind.includes('manifest')
    await damaged(workspace, path, undefined, async () =>
      expect(await named(workspace), `${path} gone`).toEqual(isMissed ? [path] : []),
    )
  })
})

describe('every reader refuses a damaged file', { timeout: PATIENCE_MS }, () => {
  async function expectRefused(work: () => unknown, context: string): Promise<void> {
    const error = await Promise.resolve()
      .then(work)
      .then(
        () => undefined,
        (error: unknown) => error,
      )
    expect(isServoError(error, 'corrupt'), `${context}: ${error === undefined ? 'was read' : messageOf(error)}`).toBe(true)
  }

  test('[L2] a segment and a manifest, whichever bit of them fell over', async () => {
    const [segment] = await filesOf(small, 'segment')
    const [manifest] = await filesOf(small, 'newest manifest and older ones')
    const bytes = (await small.store.get(segment!))!
    const sealed = (await small.store.get(manifest!))!
    for (let at = 0; at < bytes.length; at++)
      await expectRefused(() => decodeSegment(flipped(bytes, at), segment!, scope), `byte ${at}`)
    for (const at of positions(sealed.length, 2_000)) {
      await expectRefused(() => decodeManifest(flipped(sealed, at), manifest!, scope), `byte ${at}`)
    }
  })

  test.each(['newest manifest and older ones', 'base', 'delta', 'removed keys'])(
    '[S5] %s: neither a compactor nor a view opens on it',
    async (kind) => {
      for (const path of (await filesOf(small, kind)).slice(-1)) {
        const good = (await small.store.get(path))!
        for (const at of positions(good.length, FLIPS / 3)) {
          await damaged(small, path, flipped(good, at), async () => {
            await expectRefused(() => small.compactor(), `compactor, byte ${at} of ${path}`)
            await expectRefused(() => small.view(), `view, byte ${at} of ${path}`)
          })
        }
      }
    },
  )

  test.each(['sorted file', 'merged sorted file'])('[S5] %s: a look-up gives the right row or none at all', async (kind) => {
    const files = (await filesOf(small, kind)).filter(
      (path) => path.includes('/partition_status/') || path.includes('/run_key_index/'),
    )
    expect(files.length).toBeGreaterThan(0)
    const keys = ['r0', 'r5', 'r8', 'nobody'] as const
    const ask = async () => {
      const view = await small.view()
      const runs = await Promise.all(keys.map((key) => view.lookup(runKeyIndex, `manual:${key}`)))
      return [
        ...runs,
        await view.lookup(partitionStatus, 'raw', 'report-3'),
        await view.lookup(partitionStatus, 'raw', 'report-8'),
      ]
    }
    const right = await ask()
    let refused = 0
    for (const path of files) {
      const good = (await small.store.get(path))!
      for (const at of positions(good.length, FLIPS)) {
        await damaged(small, path, flipped(good, at), async () => {
          const answer = await ask().catch((error: unknown) => error)
          if (isServoError(answer, 'corrupt')) refused += 1
          else expect(answer, `byte ${at} of ${path}`).toEqual(right)
        })
      }
    }
    // The rest are bytes that these look-ups do not read.
    expect(refused).toBeGreaterThan(FLIPS)
  })

  test('recorded order and its pages: a compactor that has to look back says so, and folds nothing twice', async () => {
    const [oldest] = await filesOf(paged, 'segment')
    const bytes = (await paged.store.get(oldest!))!
    const ulid = oldest!.slice(-31, -5)
    const segment = { ulid, events: decodeSegment(bytes, oldest!, scope) }
    for (const kind of ['recorded order', 'page of the order']) {
      const path = (await filesOf(paged, kind))[0]!
      const good = (await paged.store.get(path))!
      for (const at of positions(good.length, FLIPS / 6)) {
        await damaged(paged, path, flipped(good, at), async () => {
          const compactor = await paged.compactor()
          await expectRefused(() => compactor.fold.apply([segment]), `byte ${at} of ${path}`)
          expect(compactor.fold.unpublished).toBe(0)
        })
      }
    }
  })
})

test('[L2] two segments that changed places are both named as damaged, and are sound once they are put back', async () => {
  const workspace = await small.copy()
  const files = await filesOf(workspace, 'segment')
  const [a, b] = [files[0]!, files.at(-1)!]
  const [first, last] = [(await workspace.store.get(a))!, (await workspace.store.get(b))!]
  await workspace.store.put(a, last)
  await workspace.store.put(b, first)
  const { problems } = await workspace.verify()
  expect(problems.map((problem) => problem.path)).toEqual([a, b])
  for (const problem of problems) expect(problem.message).toContain('holds the segment')
  await workspace.store.put(a, first)
  await workspace.store.put(b, last)
  expect((await workspace.verify()).problems).toEqual([])
})

test('a manifest under another number, and one of another workspace, are refused', async () => {
  const [manifest] = await filesOf(small, 'newest manifest and older ones')
  const bytes = (await small.store.get(manifest!))!
  expect(() => decodeManifest(bytes, paths.manifest(99), scope)).toThrow(
    expect.objectContaining({ code: 'misplaced_manifest' }),
  )
  const elsewhere = { ...scope, workspace_id: 'other' }
  expect(() => decodeManifest(bytes, manifest!, elsewhere)).toThrow(expect.objectContaining({ code: 'misplaced_manifest' }))
})
