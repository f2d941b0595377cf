// What a user gets: packs dist/, installs the tarball in an empty folder, and asks the installed servo for its version.

import { execSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'

const root = path.resolve(import.meta.dirname, '..')
const { name, version } = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8'))
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'servo-pack-'))

// `npm run` hands its own settings down as npm_* variables; a user's shell has none of them.
const env = Object.fromEntries(Object.entries(process.env).filter(([key]) => !key.startsWith('npm_')))
const sh = (command, cwd) => execSync(command, { cwd, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).trim()

try {
  const tarball = sh(`npm pack --silent --pack-destination "${folder}"`, root).split('\n').at(-1)
  fs.writeFileSync(path.join(folder, 'package.json'), '{ "private": true, "type": "module" }\n')
  sh(`npm install --silent --ignore-scripts --no-audit --no-fund ./${tarball}`, folder)
  const printed = sh('npx --no -- servo --version', folder)
  if (printed !== version) throw new Error(`the installed servo calls itself "${printed}", package.json says "${version}"`)
  sh(`node --input-type=module -e "await import('${name}')"`, folder)
  console.log(`${tarball} installs, imports, and answers ${printed} on Node ${process.version}`)
} finally {
  fs.rmSync(folder, { recursive: true, force: true })
}
