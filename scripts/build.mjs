// Writes dist/ anew: a file left over from an older build would be published with the rest.

import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { bundle } from './bundle.ts'

const root = path.resolve(import.meta.dirname, '..')
const dist = path.join(root, 'dist')
fs.rmSync(dist, { recursive: true, force: true })
// Types first: code that has a mistake in its types is not published.
const { status } = spawnSync('tsc', ['-p', 'tsconfig.build.json'], {
  cwd: root,
  stdio: 'inherit',
  shell: process.platform === 'win32',
})
if (status !== 0) process.exit(status ?? 1)
for (const { name, code } of await bundle()) {
  const file = path.join(dist, name)
  fs.mkdirSync(path.dirname(file), { recursive: true })
  fs.writeFileSync(file, code)
}
