import { execFile } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import * as everything from '../../src/index.ts'

const root = path.resolve(import.meta.dirname, '../..')
const page = fs.readFileSync(path.join(root, 'docs/sdk.md'), 'utf8')

/** The modules that the page shows, by the file each says it is. */
const modules = [...page.matchAll(/^```ts\n\/\/ (\S+)\n([\s\S]*?)^```$/gm)].map(([, file = '', text = '']) => ({ file, text }))

test('the examples of docs/sdk.md are a project that loads, and its test passes', async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'servo-docs-'))
  onTestFinished(() => fs.rmSync(folder, { recursive: true, force: true }))
  fs.symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'))
  fs.writeFileSync(path.join(folder, 'package.json'), '{ "type": "module" }')
  for (const { file, text } of modules) {
    fs.mkdirSync(path.dirname(path.join(folder, file)), { recursive: true })
    fs.writeFileSync(path.join(folder, file), text)
  }
  // The page shows no SQL, but a command lists it.
  fs.mkdirSync(path.join(folder, 'ml'))
  fs.writeFileSync(path.join(folder, 'ml/features.sql'), 'select 1')
  const script = `
    const { loadProject } = await import(${JSON.stringify(path.join(root, 'src/sdk/project/project.ts'))})
    const project = await loadProject(process.argv[1])
    await import(process.argv[1] + '/assets/revenue.test.ts')
    console.log(JSON.stringify(project.problems ?? [...project.assets.keys()].sort()))`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script, folder])
  expect(JSON.parse(stdout)).toEqual([
    'crm/directory',
    'crm/profile',
    'mart/headline',
    'mart/lowest-of-week',
    'mart/regions-seen',
    'mart/report',
    'mart/revenue',
    'mart/stock',
    'ml/forecast',
    'plan/city',
    'plan/summary',
    'plan/target',
    'raw/customers',
    'raw/orders',
    'raw/rates',
    'warehouse/orders',
    'warehouse/rates',
    'web/archive',
    'web/pages',
    'web/report',
    'web/visits',
  ])
})

test('docs/sdk.md shows every function that the package exports', () => {
  // For those who catch errors of Servo itself, and what is refused as not available yet; asset authors have no use for them.
  const others = ['isServoError', 'cloudTasks', 'gcs', 'postgres', 's3', 'when']
  const shown = modules.map(({ text }) => text).join('\n')
  const missing = Object.keys(everything).filter(
    (name) => !others.includes(name) && !new RegExp(`\\b${name}[(.<\`]`).test(shown),
  )
  expect(missing).toEqual([])
})
