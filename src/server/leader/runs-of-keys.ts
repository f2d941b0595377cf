import { againKey, type RunOfKey } from '../../domain/runs/again.ts'
import { runKeyIndex } from '../../domain/runs/run-key-index.table.ts'
import { runStates, runs } from '../../domain/runs/runs.table.ts'
import { historyIndex } from '../../model/system-tables.ts'
import type { KnownRows } from './known-rows.ts'

/**
 * The runs that these keys have made, and for those that failed the reruns of later requests for the key. Runs that have ended long ago
 * are found too, by the index of history.
 */
export async function runsOfKeys(known: KnownRows, keys: Iterable<string>): Promise<(runKey: string) => RunOfKey | undefined> {
  const found = new Map<string, RunOfKey>()
  for (let asked = [...new Set(keys)]; asked.length > 0; ) {
    const made = (await known.coldRows(runKeyIndex).lookup(asked.map((key) => [key]))).filter((row) => row !== undefined)
    const states = await statesOf(
      known,
      made.map(({ run_id }) => run_id),
    )
    for (const { run_key, run_id, request_fingerprint } of made) {
      const state = states.get(run_id)
      if (state !== undefined) found.set(run_key, { run_id, state, request_fingerprint })
    }
    asked = made.flatMap(({ run_key, run_id }) => (states.get(run_id) === 'FAILED' ? [againKey(run_key, run_id)] : []))
  }
  return (runKey) => found.get(runKey)
}

async function statesOf(known: KnownRows, runIds: readonly string[]): Promise<ReadonlyMap<string, RunOfKey['state']>> {
  const states = new Map<string, RunOfKey['state']>()
  const sealed: string[] = []
  for (const run_id of runIds) {
    const run = known.rows().hot(runs).get(run_id)
    if (run === undefined) sealed.push(run_id)
    else states.set(run_id, run.state)
  }
  const ended = await known.coldRows(historyIndex).lookup(sealed.map((run_id) => [runs.name, run_id]))
  for (const row of ended) {
    const state = runStates.find((one) => one === row?.state)
    if (row !== undefined && state !== undefined) states.set(row.owner_id, state)
  }
  return states
}
