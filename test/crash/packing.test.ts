import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { fsStore } from '../../src/adapters/fs/object-store.ts'
import { memoryStore } from '../../src/adapters/memory/object-store.ts'
import { orchestration } from '../../src/domain/index.ts'
import { verify } from '../../src/engine/check/verify.ts'
import { Ledger } from '../../src/engine/ledger/ledger.ts'
import { scanLedger } from '../../src/engine/ledger/scan-ledger.ts'
import { Paths } from '../../src/engine/paths.ts'
import { Compactor } from '../../src/engine/publish/compactor.ts'
import { DAY_MS } from '../../src/lib/time.ts'
import { ulidSource } from '../../src/lib/ulid.ts'
import { reportFact } from '../../src/testing/facts.ts'
import { projectOf, type TestProject } from '../e2e/support/project.ts'
import { until } from '../e2e/support/until.ts'
import { TestClock } from '../engine/workspace.ts'

/** More with `SERVO_PACK_KILLS=200`. */
const KILLS = Number(process.env['SERVO_PACK_KILLS'] ?? 1)
/** A folder is packed after so many kills, and another one begins. */
const KILLS_PER_FOLDER = 10
const DAYS = 3
const SEGMENTS_PER_DAY = 150

const scope = { tenant_id: 'default', workspace_id: 'default' }
const paths = new Paths(scope)
const ASSETS = `import { asset } from 'servo-flow'
export const small = asset('small', { run: () => ({ at: Date.now() }) })
`

/** A project that was busy last week: days that are settled, and not packed. Returns the ids of all events. */
async function busyLastWeek(project: TestProject): Promise<Set<string>> {
  const store = memoryStore()
  const clock = new TestClock(Date.now() - (DAYS + 3) * DAY_MS)
  const ledger = new Ledger({ store, scope, clock, ulid: ulidSource(() => clock.now(), randomBytes), source: 'test' })
  const compactor = await Compactor.open({ store, scope, registry: orchestration, clock, name: 'test' })
  const events = new Set<string>()
  for (let day = 0; day < DAYS + 2; day++) {
    for (let n = 0; n < (day < DAYS ? SEGMENTS_PER_DAY : 2); n++) {
      clock.pass(1)
      for (const { event_id } of (await ledger.append([reportFact(`${day}-${n}`)])).events) events.add(event_id)
      if (n === 0) await compactor.catchUp().then(() => compactor.publish({ kind: 'base' }))
    }
    await compactor.catchUp()
    await compactor.publish({ kind: 'base' })
    clock.pass(DAY_MS)
  }
  for await (const { path } of store.list('')) {
    const file = project.file(join('.servo', path))
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    writeFileSync(file, (await store.get(path))!, { mode: 0o600 })
  }
  return events
}

/** Ids of all events in the ledger. Each is there once. */
async function eventsIn(dir: string): Promise<Set<string>> {
  const found = new Set<string>()
  for await (const scanned of scanLedger({ store: fsStore(dir), paths, scope })) {
    if ('error' in scanned) throw scanned.error
    for (const { event_id } of scanned.segment.events) {
      expect(found.has(event_id), `${event_id} is there twice`).toBe(false)
      found.add(event_id)
    }
  }
  return found
}

test('[L10][I1] a server that is killed while it packs loses nothing, and the next one packs the rest', {
  timeout: 120_000 + KILLS * 20_000,
}, async () => {
  for (let done = 0; done < KILLS; ) {
    const project = projectOf({ 'assets/all.ts': ASSETS })
    const servoDir = project.file('.servo')
    const events = await busyLastWeek(project)
    const archives = (): string[] =>
      existsSync(join(servoDir, paths.archives)) ? readdirSync(join(servoDir, paths.archives)) : []
    const runs: string[] = []
    for (let kill = 0; kill < KILLS_PER_FOLDER && done < KILLS; kill++, done++) {
      const dev = await project.dev()
      runs.push(await project.request('small'))
      const before = archives().length
      // Between the creation of an archive, the manifest after it, and the deletions after that. Some are left for the next ones.
      while (archives().length === before && before < DAYS && !dev.isOver) await sleep(2)
      await sleep(Math.random() * 40)
      dev.kill('SIGKILL')
      await dev.ended
      const there = await eventsIn(servoDir)
      expect(
        [...events].filter((id) => !there.has(id)),
        `after kill ${done} in ${servoDir}`,
      ).toEqual([])
      const report = await verify({
        store: fsStore(servoDir),
        scope,
        registry: orchestration,
        scratch: memoryStore(),
        quick: true,
      })
      expect(report.problems).toEqual([])
    }
    const dev = await project.dev()
    const left = (day: string): number => readdirSync(join(servoDir, paths.day(day))).length
    const days = (): string[] => archives().map((name) => name.slice(0, 10))
    await until(() => new Set(days()).size === DAYS && days().every((day) => left(day) === 0), 'all days to be packed')
    dev.kill('SIGTERM')
    await dev.ended
    const there = await eventsIn(servoDir)
    expect([...events].filter((id) => !there.has(id))).toEqual([])
    expect(await project.json('verify')).toMatchObject({ ok: true, problems: [], replayed: true, unfolded: [] })
    // Every run that was acknowledged is there, in tables and in what is made of the ledger alone.
    const rows = await project.query('SELECT run_id FROM runs')
    expect(runs.filter((run) => !rows.some(({ run_id }) => run_id === run))).toEqual([])

    expect(await project.servo('backup', 'backup')).toMatchObject({ code: 0, stderr: '' })
    const copy = projectOf({ 'assets/all.ts': ASSETS })
    expect(await copy.servo('restore', project.file('backup'))).toMatchObject({ code: 0, stderr: '' })
    const restored = await eventsIn(copy.file('.servo'))
    expect([...there].filter((id) => !restored.has(id))).toEqual([])
    await copy.end()
    await project.end()
  }
})
