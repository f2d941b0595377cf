import { createHash } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { memoryStore } from '../../../src/adapters/memory/object-store.ts'
import { orchestration } from '../../../src/domain/index.ts'
import { TaskFinished } from '../../../src/domain/tasks/task-finished.event.ts'
import type { Damage } from '../../../src/engine/ledger/read-segment.ts'
import { openSegment } from '../../../src/engine/ledger/segment.ts'
import { readMark } from '../../../src/engine/manifest/published-mark.ts'
import { DAY_MS } from '../../../src/lib/time.ts'
import { newEvent } from '../../../src/model/event.ts'
import { reportFact, runFacts } from '../../../src/testing/facts.ts'
import { ScriptedLease } from '../../../src/testing/scripted-lease.ts'
import { seededBytes } from '../../../src/testing/seeded-bytes.ts'
import { storedRows } from '../../../src/testing/stored-rows.ts'
import { fullState } from '../full-state.ts'
import { packAll, packerOf, publishNext } from '../pack/packed-days.ts'
import { paths, scope, TestClock, Workspace } from '../workspace.ts'

/** How many damages are done. Most of them take a replay of the ledger to be judged. */
const DAMAGES = Number(process.env['SERVO_DAMAGES'] ?? 15)
/** Damages that are done at once, at most. */
const AT_ONCE = 3
const PATIENCE_MS = Math.max(120_000, DAMAGES * 10_000)

const DATA = `${paths.root}data/`
const SIGN = `${paths.root}lease/000000000001.sign.json`

/** The files of a project, by path. */
type Files = ReadonlyMap<string, Uint8Array>

/** New contents of a file; undefined for none. */
interface Change {
  readonly path: string
  readonly bytes: Uint8Array | undefined
}

type Outcome = 'named' | 'harmless' | 'tail' | 'masked'

let pristine: Files
let rows: Awaited<ReturnType<typeof rowsOf>>

beforeAll(async () => {
  const workspace = await fullState({ paged: true })
  const lease = new ScriptedLease()
  const compactor = await workspace.compactor({ lease })
  // The first days are packed, one of them in two archives.
  for (const day of [1, 2, 3, 4]) {
    workspace.clock.pass(DAY_MS)
    await publishNext(workspace, compactor, reportFact(`day ${day}`))
  }
  await packAll(packerOf(workspace, compactor, { lease, rule: { maxSegments: 24 } }))
  for (const name of ['values', 'more values']) await appendWithValues(workspace, name)
  await compactor.catchUp()
  await compactor.publish({ kind: 'base' })
  await workspace.append(reportFact('in a delta'))
  await compactor.catchUp()
  await compactor.publish()
  // The tail: no manifest covers these yet.
  await appendWithValues(workspace, 'tail')
  for (const [path, text] of [
    [SIGN, JSON.stringify({ renewals: 0, address: null, released: true, kept: lease.kept })],
    [SIGN.replace('.sign', ''), '{"epoch":1}'],
    [`${paths.root}logs/run_1/attempt_1/000000000001-000000000001.ndjson`, '{"text":"printed"}\n'],
    [`${paths.root}secrets/run_ids-1.json`, '{"fingerprint":"x"}'],
    ['local/secrets.json', '{}'],
  ] as const)
    await workspace.store.put(path, Buffer.from(text))
  pristine = await filesIn(workspace)
  rows = await rowsOf(pristine)
}, PATIENCE_MS)

/** A run whose tasks have stored values, with size and checksum on record. */
async function appendWithValues(workspace: Workspace, name: string): Promise<void> {
  for (const batch of runFacts(name, { tasks: 2 }).batches) {
    const events = batch.map((event) => {
      if (event.definition !== TaskFinished) return event
      const payload = event.payload as Parameters<typeof TaskFinished.idempotencyKey>[0]
      const value = Buffer.from(JSON.stringify({ made: payload.task_key, amount: 100 }))
      const path = `data/shop/${name.replace(' ', '-')}/${payload.materialization_id?.replaceAll(/[[\] ]/g, '-')}.json`
      const sha256 = createHash('sha256').update(value).digest('hex')
      values.push([`${paths.root}${path}`, value])
      return newEvent(TaskFinished, { ...payload, output: { path, bytes: value.length, sha256 } })
    })
    await workspace.append(...events)
  }
  for (const [path, value] of values.splice(0)) await workspace.store.put(path, value)
}
const values: [string, Uint8Array][] = []

async function filesIn(workspace: Workspace): Promise<Files> {
  const found = new Map<string, Uint8Array>()
  for (const path of await workspace.paths('')) found.set(path, (await workspace.store.get(path))!)
  return found
}

async function workspaceOf(files: Files): Promise<Workspace> {
  const store = memoryStore()
  for (const [path, bytes] of files) await store.put(path, bytes)
  return new Workspace(store, new TestClock(Date.UTC(2025, 0, 21)), 9)
}

/** What a reader of everything gets: all rows with the tail folded, and all values. */
async function rowsOf(files: Files) {
  const workspace = await workspaceOf(files)
  const compactor = await workspace.compactor()
  await compactor.catchUp()
  await compactor.publish()
  const stored = [...files].filter(([path]) => path.startsWith(DATA) && pristine.has(path))
  return { rows: await storedRows(workspace.store, scope, orchestration), values: stored.length }
}

function changed(files: Files, changes: readonly Change[]): Files {
  const now = new Map(files)
  for (const { path, bytes } of changes) {
    if (bytes === undefined) now.delete(path)
    else now.set(path, bytes)
  }
  return now
}

/** What the lease keeps, read as a lease in a folder reads it: a sign that is no JSON says nothing. */
function keptIn(files: Files): string | undefined {
  try {
    const { kept } = JSON.parse(Buffer.from(files.get(SIGN) ?? []).toString()) as { kept?: unknown }
    return typeof kept === 'string' ? kept : undefined
  } catch {
    return undefined
  }
}

async function verified(files: Files) {
  const workspace = await workspaceOf(files)
  return await workspace.verify({ data: true, kept: keptIn(files) })
}

type Roll = (below: number) => number

const diceOf = (seed: number): Roll => {
  const bytes = seededBytes(seed)
  return (below) => Number(Buffer.from(bytes(6)).readUIntBE(0, 6) % below)
}

const kinds = ['bit', 'truncate', 'delete', 'swap', 'rename', 'duplicate'] as const
type Kind = (typeof kinds)[number]

/** A file, chosen with the same chance for each folder: there are many more tables than manifests. */
function anyFile(files: Files, roll: Roll): string {
  const areas = Object.groupBy(files.keys(), areaOf)
  const names = Object.keys(areas)
  const area = areas[names[roll(names.length)]!]!
  return area[roll(area.length)]!
}

/** One like it, more often than not: damage that looks right is the hardest to notice. */
function anotherFile(files: Files, path: string, roll: Roll): string {
  const alike = [...files.keys()].filter((other) => other !== path && areaOf(other) === areaOf(path))
  return alike.length > 0 && roll(4) > 0 ? alike[roll(alike.length)]! : anyFile(files, roll)
}

function newName(files: Files, path: string, roll: Roll): string {
  const [folder, name] = [path.slice(0, path.lastIndexOf('/') + 1), path.slice(path.lastIndexOf('/') + 1)]
  const other = anotherFile(files, path, roll)
  const names = [
    `${folder}${name}.bak`,
    `${folder}copy-${name}`,
    // The next number or letter: as valid a name as the file's own.
    `${folder}${name.replace(/[0-8](?=[^0-9]*$)/, (digit) => String(Number(digit) + 1))}`,
    `${other.slice(0, other.lastIndexOf('/') + 1)}${name}`,
    other,
  ]
  return names[roll(names.length)]!
}

function damage(files: Files, kind: Kind, roll: Roll): Change[] {
  const path = anyFile(files, roll)
  const bytes = files.get(path)!
  const other = anotherFile(files, path, roll)
  switch (kind) {
    case 'bit': {
      if (bytes.length === 0) return []
      const at = roll(bytes.length)
      return [{ path, bytes: bytes.with(at, bytes[at]! ^ (1 << roll(8))) }]
    }
    case 'truncate':
      return bytes.length === 0 ? [] : [{ path, bytes: bytes.subarray(0, roll(bytes.length)) }]
    case 'delete':
      return [{ path, bytes: undefined }]
    case 'swap':
      return [
        { path, bytes: files.get(other)! },
        { path: other, bytes },
      ]
    case 'rename':
      return [
        { path, bytes: undefined },
        { path: newName(files, path, roll), bytes },
      ]
    case 'duplicate':
      return [{ path: newName(files, path, roll), bytes }]
  }
}

/** The parts of a project, as ARCHITECTURE has them. */
const areas: readonly [string, RegExp][] = [
  ['archives', /\/orchestration\.archives\//],
  ['ledger', /\/ledger\//],
  ['manifests', /\/manifests\//],
  ['recorded order', /\/_order/],
  ['history', /\/history\/|_history_pages/],
  ['other tables', /\/state\//],
  ['data', /\/data\//],
  ['lease', /\/lease\//],
  ['logs and secrets', /./],
]
const areaOf = (path: string): string => areas.find(([, pattern]) => pattern.test(path))![0]

const isSame = (a: Uint8Array | undefined, b: Uint8Array | undefined): boolean =>
  a === undefined || b === undefined ? a === b : Buffer.compare(a, b) === 0

const sequenceOf = (path: string) => openSegment(pristine.get(path)!, path, scope).sequence!
const isSegment = (path: string): boolean => path.startsWith(paths.ledger) && pristine.has(path)

/** True if verify misses this segment by its number: where no order names it yet, nothing knows its name. */
function isMissed(path: string, problems: readonly Damage[]): boolean {
  if (!isSegment(path)) return false
  const { writer, number } = sequenceOf(path)
  return problems.some(({ message }) => {
    const [, first, last = first, whose] =
      /segments? (\d+)(?: to (\d+))? of the writer (\w+) (?:is|are) missing/.exec(message) ?? []
    return whose === writer && Number(first) <= number && number <= Number(last)
  })
}

/** A segment that is gone with all that its writer wrote after it, none of which is named anywhere. */
function isTail(path: string, now: Files): boolean {
  if (!isSegment(path) || now.has(path)) return false
  const gone = sequenceOf(path)
  const published = readMark(keptIn(pristine)!).writers[gone.writer]?.number ?? 0
  const later = [...pristine.keys()].filter(
    (at) => isSegment(at) && sequenceOf(at).writer === gone.writer && sequenceOf(at).number >= gone.number,
  )
  return gone.number > published && later.every((at) => !now.has(at))
}

async function judge(change: Change, now: Files, found: readonly Damage[]): Promise<Outcome | undefined> {
  const { path } = change
  const problems = new Set(found.map((problem) => problem.path))
  if (problems.has(path) || isMissed(path, found)) return 'named'
  // What the lease keeps is named by where it is.
  if (path === SIGN && problems.has('lease')) return 'named'
  if (isTail(path, now)) return 'tail'
  const alone = changed(pristine, [change])
  const report = await verified(alone)
  if (report.ok) return JSON.stringify(await rowsOf(alone)) === JSON.stringify(rows) ? 'harmless' : undefined
  // Alone it is named. Here, what tells of it is damaged too, and that is named.
  return (await isMasked(path, now, found)) ? 'masked' : undefined
}

/** True if what lists a file, or the segment that tells of a value, is named. Once that is mended, nothing hides the file any more. */
async function isMasked(path: string, now: Files, found: readonly Damage[]): Promise<boolean> {
  const inLedger = (problem: Damage): boolean => [paths.ledger, paths.archives].some((part) => problem.path.startsWith(part))
  if (path.startsWith(DATA)) return found.some(inLedger)
  if (found.length === 0) return false
  const workspace = await workspaceOf(now)
  const lease = new ScriptedLease()
  lease.kept = keptIn(now)
  await workspace.rebuild({ lease, acceptLoss: true })
  const { problems } = await workspace.verify({ data: true, kept: lease.kept })
  return problems.every((problem) => inLedger(problem) || problem.path.startsWith(DATA))
}

test('the state under test is in order, and has a file in every part of a project', async () => {
  const report = await verified(pristine)
  expect(report.problems).toEqual([])
  expect(report).toMatchObject({ ok: true, replayed: true, values: { checked: 6, not_checked: 0 } })
  expect(report.unfolded.length).toBeGreaterThan(2)
  expect(new Set([...pristine.keys()].map(areaOf))).toEqual(new Set(areas.map(([area]) => area)))
})

test(
  '[S14] random damage, several at once, anywhere in a project, is named by verify, or harmless, or in the tail that nothing names yet',
  async () => {
    const table: Record<string, Record<string, number>> = {}
    const count = (row: string, column: string): void => {
      table[row] ??= {}
      table[row][column] = (table[row][column] ?? 0) + 1
    }
    let done = 0
    while (done < DAMAGES) {
      const seed = Math.floor(Math.random() * 2 ** 31)
      const roll = diceOf(seed)
      const together = Math.min(1 + roll(AT_ONCE), DAMAGES - done)
      let now = pristine
      const touched = new Map<string, Kind>()
      for (let i = 0; i < together; i++) {
        const kind = kinds[roll(kinds.length)]!
        const changes = damage(now, kind, roll)
        now = changed(now, changes)
        for (const { path } of changes) touched.set(path, kind)
      }
      done += together
      const report = await verified(now)
      for (const [path, kind] of touched) {
        const change = { path, bytes: now.get(path) }
        if (isSame(change.bytes, pristine.get(path))) continue
        const outcome = await judge(change, now, report.problems)
        const facts = `seed ${seed}: ${kind} of ${path}; verify says ${JSON.stringify(report.problems)}`
        expect(outcome, facts).toBeDefined()
        count(`${areaOf(path)}: ${kind}`, outcome!)
      }
    }
    const sorted = Object.fromEntries(Object.entries(table).sort(([a], [b]) => (a < b ? -1 : 1)))
    console.table(sorted, ['named', 'harmless', 'tail', 'masked'])
  },
  PATIENCE_MS,
)
