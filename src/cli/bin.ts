#!/usr/bin/env node

// What `servo` starts. An older Node must be able to parse this file to say that it is too old: no syntax newer than import(), and
// no imports, because those are loaded first.

const parts = process.version.slice(1).split('.')
const [major, minor] = [Number(parts[0]), Number(parts[1])]

// 22.18 is the first that runs TypeScript as it is. package.json says the same to npm, which only warns.
if (major < 22 || (major === 22 && minor < 18)) {
  const message = `Servo needs Node 22.18 or newer; this is ${process.version}`
  const hint = 'Install Node 24 (https://nodejs.org, or your version manager: nvm install 24) and run it again.'
  const isJson = process.argv.some((word) => word === '--json' || word.indexOf('--json=') === 0)
  const error = { kind: 'unavailable', code: 'node_too_old', message, hint }
  process.stderr.write(isJson ? `${JSON.stringify({ error })}\n` : `error: ${message}\nhint: ${hint}\n`)
  // As for anything else that is needed and missing.
  process.exitCode = 3
} else if (process.argv.length === 3 && /^(?:--version|-V|-v)$/.test(process.argv[2] ?? '')) {
  // Known without any command; loading them all would take as long as Node does.
  void import('node:fs').then(({ readFileSync }) => {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }
    process.stdout.write(`${version}\n`)
  })
} else {
  // Before anything else is loaded, so that its compiled code is cached from the second start on.
  void import('node:module')
    .then(({ enableCompileCache }) => enableCompileCache())
    .then(() => import('./main.ts'))
    .then(({ main }) => main(process.argv.slice(2)))
}
