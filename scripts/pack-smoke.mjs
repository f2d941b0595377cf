// What a user gets: packs dist/, makes a project by the packed servo as npx runs it, and uses the project without an edit, on a terminal.
// The screens are compared with first-minutes.txt; UPDATE_GOLDEN=1 writes that file anew.

import { execSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { hasPython, PseudoTerminal } from '../test/e2e/support/pseudo-terminal.ts'

const root = path.resolve(import.meta.dirname, '..')
const golden = path.join(import.meta.dirname, 'first-minutes.txt')
const { name, version } = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8'))
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'servo-pack-'))
const shop = path.join(folder, 'shop')

// `npm run` hands its own settings down as npm_* variables; a user's shell has none of them.
const env = Object.fromEntries(Object.entries(process.env).filter(([key]) => !key.startsWith('npm_')))
for (const key of Object.keys(process.env)) if (!(key in env)) delete process.env[key]
const sh = (command, cwd) => execSync(command, { cwd, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).trim()

/** Fails with what a command printed, unless that is as it should be. */
function expectPrinted(command, wanted) {
  const printed = sh(command, shop)
  if (!wanted.test(printed)) throw new Error(`${command} printed\n${printed}\nand not ${wanted}`)
}

const terminals = []
function play(command, cwd) {
  // The spinner and the warnings of npm are not ours.
  const quiet = { npm_config_loglevel: 'error', npm_config_progress: 'false' }
  const terminal = new PseudoTerminal(['sh', '-c', command], cwd, quiet)
  terminals.push(terminal)
  return terminal
}

/** The last screen of a command, without what differs from time to time. */
function screenOf(command, terminal) {
  const lines = terminal.screen.map((line) =>
    line
      .replaceAll(folder, '…')
      .replace(/run_[a-z2-7]{6,}/g, 'run_…')
      .replace(/\d+(\.\d+)? ?m?s\b/g, '…')
      .replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:…')
      .replace(/\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?/g, '…')
      .replace(/ +…/g, ' …')
      .trimEnd(),
  )
  return [`$ ${command}`, ...lines].join('\n').trimEnd()
}

/** What a newcomer does, one terminal each; with the seconds from the first key to the first green run. */
async function playFirstMinutes(npx) {
  const screens = []
  const began = performance.now()
  const init = play(`${npx} servo init shop --yes`, folder)
  if ((await init.ended) !== 0) throw new Error(`servo init failed:\n${init.written}`)
  const made = performance.now()
  screens.push(screenOf('npx servo-flow init shop --yes', init))
  const dev = play('npx servo dev --port 0', shop)
  await dev.shows(/ready in/)
  await dev.shows(/nightly/)
  const ready = performance.now()
  const whenReady = screenOf('npx servo dev', dev)
  const run = play(`npx servo run '*' --partition '*'`, shop)
  if ((await run.ended) !== 0) throw new Error(`servo run failed:\n${run.written}`)
  const green = performance.now()
  dev.type('\x03')
  await dev.ended
  // Tasks end in any order; their number is in the last line.
  const last = run.screen.findLastIndex((line) => /^succeeded {2}run_/.test(line))
  screens.push(whenReady, screenOf(`npx servo run '*' --partition '*'`, { screen: run.screen.slice(last) }))
  const seconds = (ms) => (ms / 1_000).toFixed(1)
  console.log(
    `first minutes: 3 commands, no edit; init ${seconds(made - began)} s, dev ready ${seconds(ready - made)} s, ` +
      `run green ${seconds(green - ready)} s`,
  )
  return `${screens.join('\n\n')}\n`
}

let installed
try {
  const tarball = sh(`npm pack --silent --pack-destination "${folder}"`, root).split('\n').at(-1)
  const npx = `npx --yes --package ./${tarball} --`
  // npx keeps what it installed for ever.
  installed = sh(`${npx} node -p "process.env.PATH.split(path.delimiter).find((it) => it.includes('_npx'))"`, folder)
  if (hasPython()) {
    const played = await playFirstMinutes(npx)
    if (process.env.UPDATE_GOLDEN === '1') fs.writeFileSync(golden, played)
    const expected = fs.readFileSync(golden, 'utf8')
    if (played !== expected) throw new Error(`the screens of the first minutes are\n${played}\nand not those of ${golden}`)
  } else if (process.env.SERVO_REQUIRE_ALL === '1') throw new Error('python3 is missing: nothing can be played on a terminal')
  else sh(`${npx} servo init shop --yes`, folder)
  expectPrinted('npx --no -- servo --version', new RegExp(`^${version.replaceAll('.', '\\.')}$`))
  expectPrinted("npx --no -- servo run '*' --partition '*'", /succeeded {2}run_\w+ {2}22 tasks .*\n {2}checks: 22 passed$/)
  expectPrinted('npx --no -- servo check', /^ok {2}checked 4 assets, 1 query, 1 schedule, 0 sensors, types with TypeScript /)
  expectPrinted('npm test', /pass 2\n/)
  sh(`node --input-type=module -e "await import('${name}')"`, shop)
  console.log(`${tarball} makes a project that runs, with its tests, on Node ${process.version}`)
} finally {
  for (const terminal of terminals) terminal.kill()
  if (installed?.includes('_npx')) fs.rmSync(path.resolve(installed, '../..'), { recursive: true, force: true })
  fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
}
