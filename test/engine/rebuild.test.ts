import { beforeAll, describe, expect, test } from 'vitest'
import { runKeyIndex } from '../../src/domain/runs/run-key-index.table.ts'
import { runs } from '../../src/domain/runs/runs.table.ts'
import { tasks } from '../../src/domain/tasks/tasks.table.ts'
import { fileRef } from '../../src/engine/files/file-ref.ts'
import { encodeManifest } from '../../src/engine/manifest/stored-manifests.ts'
import { decodeRows, encodeTableRows } from '../../src/engine/parquet/parquet.ts'
import { isServoError } from '../../src/lib/error.ts'
import { HOUR_MS } from '../../src/lib/time.ts'
import { historyIndex } from '../../src/model/system-tables.ts'
import { countingStore } from '../../src/testing/counting-store.ts'
import { reportFact, runFacts } from '../../src/testing/facts.ts'
import { seededBytes } from '../../src/testing/seeded-bytes.ts'
import { filesOf, fullState } from './full-state.ts'
import { Gate, interceptedStore } from './intercepted-store.ts'
import { reachableFrom } from './reachable.ts'
import { paths, scope, Workspace } from './workspace.ts'

let full: Workspace
beforeAll(async () => {
  full = await fullState({ paged: true })
})

const garbage = new TextEncoder().encode('garbage')
/** Other seeds in each run of the tests; a failure names its seed. */
const seeds = (): number[] =>
  Array.from({ length: Number(process.env['SERVO_RUNS'] ?? 5) }, () => Math.floor(Math.random() * 2 ** 31))
/** Numbers from 0 to 1, the same for the same seed. */
const dice = (seed: number) => {
  const bytes = seededBytes(seed)
  return (): number => bytes(1)[0]! / 256
}

async function expectSound(workspace: Workspace): Promise<void> {
  const report = await workspace.verify()
  expect(report.problems).toEqual([])
  expect(report).toMatchObject({ ok: true, replayed: true, unfolded: [], relaid: [] })
}

describe('a rebuild while the recorded order can be read', { timeout: 120_000 }, () => {
  test('[I2] of a sound state changes not one byte', async () => {
    const workspace = await full.copy()
    const before = await workspace.digests()
    expect(await workspace.rebuild()).toMatchObject({ order: 'recorded', repaired: [], problems: [] })
    expect(await workspace.digests()).toEqual(before)
  })

  test('[S6][I2] restores, byte for byte, any part of the derived files that is gone or damaged', async () => {
    for (const seed of seeds()) {
      const workspace = await full.copy()
      const before = await workspace.digests()
      const roll = dice(seed)
      const share = roll()
      const spoilt: string[] = []
      for (const path of await workspace.paths(paths.state)) {
        if (!path.endsWith('.parquet') || roll() > share) continue
        spoilt.push(path)
        const bytes = (await workspace.store.get(path))!
        if (roll() < 0.4) await workspace.store.delete(path)
        else
          await workspace.store.put(path, roll() < 0.5 ? garbage : bytes.with(bytes.length >> 1, bytes[bytes.length >> 1]! ^ 1))
      }
      const report = await workspace.rebuild()
      expect(report, `seed ${seed}`).toMatchObject({ order: 'recorded', problems: [] })
      expect([...report.repaired].sort(), `seed ${seed}`).toEqual(spoilt.sort())
      expect(await workspace.digests(), `seed ${seed}`).toEqual(before)
    }
  })

  test('[I2] restores all of them, those of older manifests that are kept included, and folds what is new', async () => {
    const workspace = await full.copy()
    const before = await workspace.digests(paths.state)
    for (const path of Object.keys(before)) if (path.endsWith('.parquet')) await workspace.store.delete(path)
    await workspace.append(reportFact('not folded yet'))
    const report = await workspace.rebuild()
    expect(report).toMatchObject({ order: 'recorded', problems: [], segments: (await workspace.paths(paths.ledger)).length })
    expect(await workspace.digests(paths.state)).toMatchObject(before)
    for (const manifest of await workspace.manifests()) await reachableFrom(workspace.store, manifest)
    await expectSound(workspace)
  })

  test('mends the copy of the manifest and gives up an older manifest that cannot be read', async () => {
    const workspace = await full.copy()
    const [older] = await filesOf(workspace, 'newest manifest and older ones')
    const copy = await workspace.store.get(paths.manifestCopy)
    await workspace.store.put(older!, garbage)
    await workspace.store.put(paths.manifestCopy, garbage)
    expect(await workspace.rebuild()).toMatchObject({ order: 'recorded', repaired: [paths.manifestCopy] })
    expect(await workspace.store.get(paths.manifestCopy)).toEqual(copy)
    expect(await workspace.store.get(older!)).toBeUndefined()
    await expectSound(workspace)
  })

  test('leaves alone what another version of Servo wrote in other bytes, and does not pretend to bring it back', async () => {
    const workspace = await full.copy()
    const manifest = (await workspace.manifests()).at(-1)!
    const [path, other] = (await filesOf(workspace, 'base')).filter(
      (it) => manifest.base.tables['runs']!.path === it || it.includes('/timers/'),
    )
    // The same rows with another codec, and a manifest that says so.
    const rows = await decodeRows(runs, (await workspace.store.get(path!))!)
    const bytes = encodeTableRows(runs, rows, scope, { codec: 'snappy' })
    await workspace.store.put(path!, bytes)
    const tables = { ...manifest.base.tables, runs: fileRef(path!, bytes, rows.length) }
    const foreign = encodeManifest({ ...manifest, base: { ...manifest.base, tables } })
    for (const older of await workspace.paths(paths.manifests)) await workspace.store.delete(older)
    await workspace.store.put(paths.manifest(manifest.number), foreign)
    await workspace.store.put(paths.manifestCopy, foreign)

    await workspace.store.delete(other!)
    expect(await workspace.rebuild()).toMatchObject({ order: 'recorded', repaired: [other] })
    expect(await workspace.store.get(path!)).toEqual(bytes)
    expect(await workspace.verify()).toMatchObject({ ok: true, relaid: [path] })

    await workspace.store.delete(path!)
    expect(await workspace.rebuild()).toMatchObject({ order: 'anew', problems: [] })
    await expectSound(workspace)
  })

  test('never replaces a file that is what its manifest says', async () => {
    const workspace = await full.copy()
    const [path] = await filesOf(workspace, 'base')
    await workspace.store.delete(path!)
    const written: string[] = []
    const store = interceptedStore(workspace.store, ({ method, path }) => void (method === 'put' && written.push(path)))
    await new Workspace(store, workspace.clock).rebuild()
    expect(written).toEqual([path])
  })
})

describe('a rebuild that has to begin anew', () => {
  /** What all tables say, as far as it does not depend on when things were sealed. */
  async function facts(workspace: Workspace) {
    const view = await workspace.view()
    const run = runFacts('unfinished', { tasks: 2 })
    return {
      unfinished: view.state.hot(runs).get(run.runId),
      tasks: [...view.state.hot(tasks).under(run.runId)].map(({ task_key, state }) => [task_key, state]),
      indexed: (await view.lookup(runKeyIndex, 'manual:r5'))?.run_id,
      sealed: (await view.lookup(historyIndex, 'runs', runFacts('r5').runId))?.state,
    }
  }

  const losses: [string, (workspace: Workspace) => Promise<void>][] = [
    [
      'the newest manifest and its copy are damaged',
      async (workspace) => {
        await workspace.store.put((await filesOf(workspace, 'newest manifest and older ones')).at(-1)!, garbage)
        await workspace.store.put(paths.manifestCopy, garbage)
      },
    ],
    [
      'all manifests are damaged, and their copy is gone',
      async (workspace) => {
        for (const path of await filesOf(workspace, 'newest manifest and older ones')) await workspace.store.put(path, garbage)
        await workspace.store.delete(paths.manifestCopy)
      },
    ],
    [
      'all manifests, their copy and the boundary are gone',
      async (workspace) => {
        for (const path of await workspace.paths(`${paths.root}manifests/`)) await workspace.store.delete(path)
      },
    ],
    [
      'all that was derived is gone',
      async (workspace) => {
        for (const path of await workspace.paths()) if (!path.startsWith(paths.ledger)) await workspace.store.delete(path)
      },
    ],
    [
      'a recorded order is damaged',
      async (workspace) => workspace.store.put((await filesOf(workspace, 'recorded order'))[3]!, garbage),
    ],
    [
      'a page of the order is gone',
      async (workspace) => workspace.store.delete((await filesOf(workspace, 'page of the order'))[0]!),
    ],
    [
      'a page of the history is damaged',
      async (workspace) => workspace.store.put((await filesOf(workspace, 'page of the history'))[0]!, garbage),
    ],
  ]

  test.each(losses)('because %s folds the whole ledger; verify is clean, and the tables say the same', async (what, lose) => {
    const workspace = await full.copy()
    const before = await facts(workspace)
    const held = await workspace.view()
    const newest = held.manifest
    await lose(workspace)
    const segments = (await workspace.paths(paths.ledger)).length
    const report = await workspace.rebuild()
    expect(report).toMatchObject({ order: 'anew', segments, problems: [] })
    await expectSound(workspace)
    expect(await facts(workspace)).toEqual(before)
    if (what !== 'all that was derived is gone') {
      // Nothing goes back, not even for those who remember more than the store does.
      const manifest = (await workspace.manifests()).at(-1)!
      expect(manifest.number).toBeGreaterThan(newest.number)
      expect(manifest.epoch).toBeGreaterThan(newest.epoch)
      expect(manifest.publish).toBeGreaterThan(newest.publish)
      expect(await held.refresh()).toBe(true)
      expect(held.state.hot(runs).get(runFacts('unfinished').runId)).toEqual(before.unfinished)
    }

    // Life goes on, and what was there before is collected.
    const compactor = await workspace.compactor()
    await workspace.append(reportFact('next'))
    await compactor.catchUp()
    await compactor.publish()
    workspace.clock.pass(HOUR_MS)
    await workspace.collect(0)
    await expectSound(workspace)
    expect(new Set(await workspace.paths(paths.state))).toEqual(await reachableFrom(workspace.store, compactor.manifest))
  })

  test('[S4][I5] fences a compactor that was under way, which does no harm', async () => {
    const workspace = await full.copy()
    const gate = new Gate(({ method, path }) => method === 'create' && path.startsWith(paths.manifests))
    const old = await workspace.compactor({ name: 'old', store: interceptedStore(workspace.store, gate.before) })
    await workspace.append(reportFact('next'))
    await old.catchUp()
    const publishing = old.publish().catch((error: unknown) => error)
    await gate.arrived
    await workspace.store.put((await filesOf(workspace, 'recorded order'))[0]!, garbage)
    await workspace.rebuild()
    gate.open()
    expect(await publishing).toMatchObject({ code: 'fenced' })
    await expectSound(workspace)
  })

  test('and dies between its manifest and the end of those before it can be repeated', async () => {
    const workspace = await full.copy()
    await workspace.store.put((await filesOf(workspace, 'recorded order'))[0]!, garbage)
    const gate = new Gate(({ method, path }) => method === 'create' && path.startsWith(paths.boundaries))
    void new Workspace(interceptedStore(workspace.store, gate.before), workspace.clock).rebuild()
    await gate.arrived
    expect(await workspace.rebuild()).toMatchObject({ order: 'recorded', problems: [] })
    workspace.clock.pass(HOUR_MS)
    await workspace.collect(0)
    await expectSound(workspace)
  })
})

describe('a rebuild that was deposed', () => {
  /** Each leaves something to write: a manifest to delete, a file to put and facts to publish, or everything anew. */
  const losses: [string, (workspace: Workspace) => Promise<void>][] = [
    [
      'mends what is damaged',
      async (workspace) => {
        await workspace.store.put((await filesOf(workspace, 'newest manifest and older ones'))[0]!, garbage)
        await workspace.store.delete((await filesOf(workspace, 'base'))[0]!)
        await workspace.append(reportFact('not folded yet'))
      },
    ],
    ['folds anew', async (workspace) => workspace.store.put((await filesOf(workspace, 'recorded order'))[0]!, garbage)],
  ]

  test.each(losses)('[E7] while it %s writes nothing from then on', async (_, lose) => {
    const damaged = await full.copy()
    await lose(damaged)
    for (const confirmations of [0, 1, 2, 3, 6]) {
      const workspace = await damaged.copy()
      const store = countingStore(workspace.store)
      let asked = 0
      let isSure = false
      const lease = {
        // Sure for the one act that it was asked for.
        get isHeld() {
          const was = isSure
          isSure = false
          return was
        },
        confirm: async () => {
          isSure = asked++ < confirmations
          return isSure
        },
      }
      await expect(new Workspace(store, workspace.clock).rebuild({ lease })).rejects.toMatchObject({ code: 'deposed' })
      expect(store.count('create', 'put', 'delete')).toBe(confirmations)
    }
  })

  test('[E7] does not say that all is well, though it had nothing to write', async () => {
    const lease = { isHeld: false, confirm: async () => false }
    await expect((await full.copy()).rebuild({ lease })).rejects.toMatchObject({ code: 'deposed' })
  })
})

describe('a damaged segment', () => {
  async function damageFolded(workspace: Workspace): Promise<{ path: string; bytes: Uint8Array }> {
    const path = (await filesOf(workspace, 'segment'))[5]!
    const bytes = (await workspace.store.get(path))!
    await workspace.store.put(path, bytes.with(50, bytes[50]! ^ 1))
    return { path, bytes }
  }

  test('is reported by a rebuild that finds the tables sound, and leaves them alone', async () => {
    const workspace = await full.copy()
    const before = await workspace.digests(paths.state)
    const { path, bytes } = await damageFolded(workspace)
    const report = await workspace.rebuild()
    expect(report.problems.map((problem) => problem.path)).toEqual([path])
    expect(await workspace.digests(paths.state)).toEqual(before)
    await workspace.store.put(path, bytes)
    await expectSound(workspace)
  })

  test('is reported by a rebuild that cannot do without it: told to, it folds all others anew; repaired, it is folded', async () => {
    const workspace = await full.copy()
    const { path, bytes } = await damageFolded(workspace)
    for (const table of await workspace.paths(paths.state)) if (table.includes('/history/')) await workspace.store.delete(table)
    const segments = (await workspace.paths(paths.ledger)).length
    const report = await workspace.rebuild({ acceptLoss: true })
    expect(report).toMatchObject({ order: 'anew', anew_because: 'loss_accepted', segments: segments - 1, left: [] })
    expect(report.problems.map((problem) => problem.path)).toEqual([path])
    expect((await workspace.verify()).problems.map((problem) => problem.path)).toEqual([path])
    expect(await workspace.store.get(path), 'it is left where it is').toBeDefined()

    await workspace.store.put(path, bytes)
    expect(await workspace.rebuild()).toMatchObject({ order: 'recorded', segments, problems: [] })
    await expectSound(workspace)
  })

  test('that is gone altogether is reported too', async () => {
    const workspace = await full.copy()
    const [path] = await filesOf(workspace, 'segment')
    await workspace.store.delete(path!)
    const { problems } = await workspace.rebuild()
    expect(problems.map((problem) => problem.path)).toEqual([path])
    expect((await workspace.verify()).problems.map((problem) => problem.path)).toEqual([path])
  })
})

test('where there is no ledger there is nothing to rebuild, and nothing is written', async () => {
  const workspace = new Workspace()
  const error = await workspace.rebuild().catch((error: unknown) => error)
  expect(isServoError(error, 'not_found')).toBe(true)
  expect(await workspace.paths()).toEqual([])
})
