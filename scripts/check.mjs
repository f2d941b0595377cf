// Everything that can be said about the code without running it. All the checks run, so that one pass shows all there is.

import { spawn } from 'node:child_process'
import path from 'node:path'

const root = path.resolve(import.meta.dirname, '..')

const checks = [
  { name: 'types', command: 'tsc', wayOut: 'tsc explains each error above' },
  { name: 'lint and format', command: 'biome check --error-on-warnings .', wayOut: '`npm run fix` repairs most of it' },
  { name: 'dead code', command: 'knip', wayOut: 'delete what nobody uses, or use it' },
  {
    name: 'package',
    command: 'node scripts/build.mjs && publint run . --strict --pack npm',
    wayOut: 'see package.json exports',
  },
]

function run(command) {
  return new Promise((resolve) => {
    let output = ''
    const child = spawn(command, { cwd: root, shell: true, stdio: ['ignore', 'pipe', 'pipe'] })
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
    child.on('close', (code) => resolve({ ok: code === 0, output }))
  })
}

const results = await Promise.all(
  checks.map(async (check) => {
    const started = performance.now()
    const result = await run(check.command)
    return { ...check, ...result, note: ` (${((performance.now() - started) / 1000).toFixed(1)} s)` }
  }),
)

for (const { name, ok, output, wayOut, note } of results) {
  if (!ok) console.log(`\n${output.trim()}\n`)
  console.log(`${ok ? 'ok    ' : 'FAILED'} ${name}${note}${ok ? '' : `: ${wayOut}`}`)
}
process.exit(results.every((result) => result.ok) ? 0 : 1)
