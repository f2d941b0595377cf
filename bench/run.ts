import { type ChildProcess, spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import path from 'node:path'

/*
 * npm run bench [-- name...] [--quick]
 *
 * Runs each benchmark in a process of its own, one after the other: what one leaves in memory, in caches or in compiled
 * code must not be the next one's head start.
 */
const ENDING = '.bench.ts'
const known = readdirSync(import.meta.dirname)
  .filter((file) => file.endsWith(ENDING))
  .map((file) => file.slice(0, -ENDING.length))
  .sort()

const options = process.argv.slice(2).filter((argument) => argument.startsWith('-'))
const names = process.argv.slice(2).filter((argument) => !argument.startsWith('-'))
const unknown = [...names.filter((name) => !known.includes(name)), ...options.filter((option) => option !== '--quick')]
if (unknown.length > 0) {
  console.error(`There is no ${unknown.join(', ')}. Benchmarks: ${known.join(', ')}. Option: --quick.`)
  process.exit(2)
}

let running: ChildProcess | undefined
let stopped = false
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    stopped = true
    // A terminal sends Ctrl-C to the whole group: passing it on would make one key press count as two.
    if (signal !== 'SIGINT' || !process.stdin.isTTY) running?.kill(signal)
  })
}

let failed = false
for (const name of names.length > 0 ? names : known) {
  if (stopped) break
  const file = path.join(import.meta.dirname, `${name}${ENDING}`)
  // Memory is compared after a collection, so the collector must be within reach.
  running = spawn(process.execPath, ['--expose-gc', file, ...options], { stdio: 'inherit' })
  const status = await new Promise((resolve) => running?.once('close', resolve))
  failed ||= status !== 0
}
process.exit(failed ? 1 : 0)
