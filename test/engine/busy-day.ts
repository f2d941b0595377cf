import { sortedByKey } from '../../src/engine/fold/row-merge.ts'
import type { State } from '../../src/engine/fold/state.ts'
import type { NewEvent } from '../../src/model/event.ts'
import type { AnyRow } from '../../src/model/table.ts'
import { reportFact, runFacts, wipeFact } from '../../src/testing/facts.ts'

/** All hot rows by table, in key order. */
export function hotRows(state: State): Record<string, AnyRow[]> {
  return Object.fromEntries(
    [...state.hotTables].map(([table, hot]) => [table.name, structuredClone(sortedByKey(table, hot.all()))]),
  )
}

/** Runs that go on side by side, a report now and then: the batches of a busy day, in one of many orders. */
export function busyDay(choices: readonly number[]): NewEvent[][] {
  const runsUnderWay = [0, 1, 2, 3].map((i) => [
    ...runFacts(`run-${i}`, { tasks: 1 + (i % 3), outcome: i === 2 ? 'FAILED' : 'SUCCEEDED' }).batches,
  ])
  const day: NewEvent[][] = []
  for (let i = 0; runsUnderWay.some((batches) => batches.length > 0); i++) {
    const open = runsUnderWay.filter((batches) => batches.length > 0)
    const next = open[(choices[i % choices.length] ?? 0) % open.length]!
    day.push([...next.shift()!])
    if (i % 5 === 0)
      day.push([reportFact(`report-${i}`, { partition: `p${i % 2}` }), wipeFact(`wipe-${i}`, { partition: `p${i % 3}` })])
  }
  return day
}
