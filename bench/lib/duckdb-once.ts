import { fsStore } from '../../src/adapters/fs/object-store.ts'
import { queryNewest } from '../../src/server/sql-rows.ts'
import { scope } from './stream.ts'

/** Answers SQL over a folder, first in a process that has not loaded DuckDB yet, then again. */
const [folder = '', sql = ''] = process.argv.slice(2)
const times: number[] = []
for (let round = 0; round < 4; round++) {
  const start = performance.now()
  const { rows } = await queryNewest(folder, fsStore(folder), scope, sql)
  for await (const _ of rows());
  times.push(performance.now() - start)
}
process.stdout.write(JSON.stringify({ coldMs: times[0], warmMs: Math.min(...times.slice(1)) }))
