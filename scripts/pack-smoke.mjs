// What a user gets: packs dist/, makes a project by the packed servo as npx runs it, and uses the project without an edit.

import { execSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'

const root = path.resolve(import.meta.dirname, '..')
const { name, version } = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8'))
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'servo-pack-'))
const shop = path.join(folder, 'shop')

// `npm run` hands its own settings down as npm_* variables; a user's shell has none of them.
const env = Object.fromEntries(Object.entries(process.env).filter(([key]) => !key.startsWith('npm_')))
const sh = (command, cwd) => execSync(command, { cwd, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).trim()

/** Fails with what a command printed, unless that is as it should be. */
function expectPrinted(command, wanted) {
  const printed = sh(command, shop)
  if (!wanted.test(printed)) throw new Error(`${command} printed\n${printed}\nand not ${wanted}`)
}

let installed
try {
  const tarball = sh(`npm pack --silent --pack-destination "${folder}"`, root).split('\n').at(-1)
  const npx = `npx --yes --package ./${tarball} --`
  // npx keeps what it installed for ever.
  installed = sh(`${npx} node -p "process.env.PATH.split(path.delimiter).find((it) => it.includes('_npx'))"`, folder)
  const began = performance.now()
  sh(`${npx} servo init shop --yes`, folder)
  const seconds = ((performance.now() - began) / 1_000).toFixed(1)
  expectPrinted('npx --no -- servo --version', new RegExp(`^${version.replaceAll('.', '\\.')}$`))
  expectPrinted("npx --no -- servo run '*' --partition '*'", /succeeded {2}run_\w+ {2}22 tasks .*\n {2}checks: 22 passed$/)
  expectPrinted('npx --no -- servo check', /^ok {2}checked 4 assets, 1 query, 1 schedule, 0 sensors, types with TypeScript /)
  expectPrinted('npm test', /pass 2\n/)
  sh(`node --input-type=module -e "await import('${name}')"`, shop)
  console.log(`${tarball} makes a project in ${seconds} s that runs, with its tests, on Node ${process.version}`)
} finally {
  if (installed?.includes('_npx')) fs.rmSync(path.resolve(installed, '../..'), { recursive: true, force: true })
  fs.rmSync(folder, { recursive: true, force: true })
}
