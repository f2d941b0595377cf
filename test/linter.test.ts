import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'

const root = path.resolve(import.meta.dirname, '..')

/** Each line of code, and whether the linter must refuse it in the pure part and in the rest of the product. */
const ambient: { code: string; pure: boolean; product: boolean }[] = [
  { code: 'Date.now()', pure: true, product: true },
  { code: '[0].map(Date.now)', pure: true, product: true },
  { code: "Date['now']()", pure: true, product: true },
  { code: 'new Date()', pure: true, product: true },
  { code: 'new Date', pure: true, product: true },
  { code: 'Date()', pure: true, product: true },
  { code: 'Math.random()', pure: true, product: true },
  { code: 'globalThis.Date.now()', pure: true, product: true },
  { code: 'performance.now()', pure: true, product: false },
  { code: 'crypto.randomUUID()', pure: true, product: false },
  { code: 'crypto.getRandomValues(new Uint8Array(1))', pure: true, product: false },
  { code: 'setTimeout(() => {}, 1)', pure: true, product: false },
  { code: 'setInterval(() => {}, 1)', pure: true, product: false },
  { code: 'setImmediate(() => {})', pure: true, product: false },
  { code: 'process.env', pure: true, product: false },
  { code: 'console.log', pure: true, product: false },
  { code: "fetch('x')", pure: true, product: false },
  { code: "import('node:fs')", pure: true, product: false },
  { code: "import('node:fs/promises')", pure: true, product: false },
  { code: "import('node:crypto')", pure: true, product: false },
  { code: 'new Date(0)', pure: false, product: false },
  { code: 'Date.UTC(2026, 0)', pure: false, product: false },
  { code: "Date.parse('2026-01-01')", pure: false, product: false },
  { code: 'Math.max(1, 2)', pure: false, product: false },
  { code: "import('zod')", pure: false, product: false },
]

interface Diagnostic {
  category: string
  location: { path: string; start: { line: number } }
}

/** Lints the lines above as each of these files and returns, per file, the code that was refused. */
function refusedBy(files: string[]): Record<string, string[]> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'servo-lint-'))
  onTestFinished(() => fs.rmSync(folder, { recursive: true, force: true }))
  fs.cpSync(path.join(root, 'biome.json'), path.join(folder, 'biome.json'))
  fs.cpSync(path.join(root, 'scripts/lint'), path.join(folder, 'scripts/lint'), { recursive: true })
  const text = ambient.map(({ code }, line) => `export const line${line} = ${code}\n`).join('')
  for (const file of files) {
    fs.mkdirSync(path.join(folder, path.dirname(file)), { recursive: true })
    fs.writeFileSync(path.join(folder, file), text)
  }
  const biome = path.join(root, 'node_modules/@biomejs/biome/bin/biome')
  const flags = ['lint', '--reporter=json', '--max-diagnostics=none', '.']
  let report = ''
  try {
    report = execFileSync(process.execPath, [biome, ...flags], {
      cwd: folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  } catch (error) {
    report = (error as { stdout: string }).stdout
  }
  const bans = ['plugin', 'lint/style/noRestrictedGlobals', 'lint/style/noRestrictedImports']
  const found = (JSON.parse(report) as { diagnostics: Diagnostic[] }).diagnostics.filter((it) => bans.includes(it.category))
  const refused = (file: string) => {
    const lines = new Set(found.filter((it) => it.location.path === file).map((it) => it.location.start.line))
    return ambient.filter((_, line) => lines.has(line + 1)).map(({ code }) => code)
  }
  return Object.fromEntries(files.map((file) => [file, refused(file)]))
}

describe('the linter', () => {
  test('[F1] refuses clock, dice, timers and IO in the middle, and clock and dice wherever they are injected', () => {
    const pure = ambient.filter((it) => it.pure).map(({ code }) => code)
    const product = ambient.filter((it) => it.product).map(({ code }) => code)
    const expected = {
      'src/domain/runs/x.ts': pure,
      'src/model/x.ts': pure,
      'src/engine/x.ts': product,
      'src/lib/x.ts': product,
      'src/ports/x.ts': product,
      'src/adapters/fs/x.ts': [],
      'src/cli/commands/x.ts': [],
      'src/server/x.ts': [],
      'src/domain/runs/x.test.ts': [],
      'test/x.test.ts': [],
    }
    expect(refusedBy(Object.keys(expected))).toEqual(expected)
  })
})
