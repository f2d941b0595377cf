import { expect, test } from 'vitest'
import { ServoError } from '../../../src/lib/error.ts'
import { MINUTE_MS, SECOND_MS } from '../../../src/lib/time.ts'
import { parkedEvents } from '../../../src/model/system-tables.ts'
import { stepToNextFault } from '../../tried-faults.ts'
import { every, hook, oneRun, Sensing } from './sensing.ts'

const sensors = [
  { name: 'inbox', config: hook },
  { name: 'files', config: every(10 * SECOND_MS) },
]

/** What happens to a process at some request to the store. */
const accidents = {
  'is killed': (sensing: Sensing) => sensing.kill(),
  'is frozen until another leads, and goes on': async (sensing: Sensing) => {
    sensing.before = () => undefined
    await sensing.start()
  },
  'cannot reach the store for a while': (sensing: Sensing) => {
    const until = sensing.clock.monotonic() + 2 * SECOND_MS
    const unreachable = new ServoError('unavailable', 'unreachable', 'the store is away, on purpose')
    sensing.before = () => {
      if (sensing.clock.monotonic() < until) throw unreachable
    }
    throw unreachable
  },
}

async function opened(): Promise<Sensing> {
  const sensing = await Sensing.open(sensors)
  sensing.evaluator.script = (request) =>
    request.of === 'poll'
      ? { ms: 500, report: { ...oneRun(), cursor: String(Number(request.cursor ?? 0) + 1) } }
      : { ms: 500, report: oneRun() }
  return sensing
}

/** Messages and polls, with an accident at the nth request to the store. False if there were fewer. */
async function withAccident(name: keyof typeof accidents, n: number): Promise<boolean> {
  const sensing = await opened()
  let left = n
  sensing.before = () => {
    left -= 1
    return left === 0 ? accidents[name](sensing) : undefined
  }
  const told: unknown[] = []
  const ask = async (id: string) => {
    try {
      told.push(await sensing.deliver(id))
    } catch (error) {
      // The sender is to deliver it again.
      expect(error).toMatchObject({ kind: 'unavailable' })
    }
  }
  void ask('m1')
  void ask('m1')
  await sensing.clock.advance(SECOND_MS)
  void ask('m1')
  void ask('m2')
  await sensing.clock.advance(12 * SECOND_MS)
  const hadAccident = left <= 0
  sensing.before = () => undefined
  if (name === 'is killed') await sensing.start()
  await sensing.clock.advance(MINUTE_MS)
  const [m1, m2] = [await sensing.answered('m1'), await sensing.answered('m2')]
  for (const answer of [m1, m2]) expect(answer).toMatchObject({ kind: 'accepted', run_ids: [expect.any(String)] })
  // What a sender was told before the accident stands.
  for (const answer of told) expect([m1, m2]).toContainEqual({ ...Object(answer), repeated: true })
  const accepted = sensing.evals().filter(({ accepted: counts }) => counts)
  const runs = sensing.runs()
  expect(runs, 'one run for each evaluation that counts').toHaveLength(accepted.length)
  expect(accepted.filter(({ trigger_source }) => trigger_source === 'push')).toHaveLength(2)
  const cursors = accepted.flatMap(({ cursor_after }) => (cursor_after === null ? [] : [Number(cursor_after)]))
  expect(
    cursors.sort((a, b) => a - b),
    'no cursor was skipped or used twice',
  ).toEqual(cursors.map((_, i) => i + 1))
  expect([...sensing.server.orchestrator.readable.state.hot(parkedEvents).all()]).toEqual([])
  return hadAccident
}

test.each(Object.keys(accidents) as (keyof typeof accidents)[])(
  '[A1][A20][A21][A41] a process that %s, at any request to its store, accepts no message and no poll twice, and loses none',
  async (name) => {
    let n = stepToNextFault()
    while (await withAccident(name, n)) n += stepToNextFault()
    expect(n, 'there were accidents').toBeGreaterThan(5)
  },
)
