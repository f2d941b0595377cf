import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { expect, test } from 'vitest'
import { Paths } from '../../../src/engine/paths.ts'
import { DAY_MS } from '../../../src/lib/time.ts'
import { ulidFloor } from '../../../src/lib/ulid.ts'
import { projectOf } from '../support/project.ts'
import { servo } from '../support/servo.ts'
import { until } from '../support/until.ts'

const paths = new Paths({ tenant_id: 'default', workspace_id: 'default' })
const GOOD = `import { asset } from 'servo-flow'\nexport const a = asset('a', { run: () => 1 })\n`
const NEEDY = `import { asset, resource } from 'servo-flow'
import { z } from 'zod'
const api = resource('api', { config: z.object({ url: z.string() }), open: (config) => config })
export const b = asset('b', { resources: { api }, deps: ['nowhere'], run: () => 1 })
`

interface Finding {
  readonly level: string
  readonly area: string
  readonly message: string
  readonly hint?: string
}

/** Everything below a folder, with what a write would change. */
const contents = (dir: string): string[] =>
  fs
    .readdirSync(dir, { recursive: true, encoding: 'utf8' })
    .map((name) => `${name} ${fs.lstatSync(path.join(dir, name)).mtimeMs} ${fs.lstatSync(path.join(dir, name)).size}`)
    .sort()

test('servo doctor finds nothing wrong where all is well, and everything that is wrong, and writes nothing', async () => {
  const project = projectOf({ 'assets/a.ts': GOOD })
  const dev = await project.dev('--run', '*')
  await dev.says(/succeeded/)
  const manifests = project.file(`.servo/${paths.manifests}`)
  await until(() => fs.existsSync(manifests) && fs.readdirSync(manifests).some((name) => name.endsWith('.json')), 'a manifest')
  const { code, stdout, stderr } = await project.servo('doctor')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const lines = stdout.trimEnd().replaceAll(/ {2,}/g, '  ').split('\n')
  // How full the disk of the machine is, is its own affair.
  expect(lines.filter((line) => !/^(ok|warning) +disk /.test(line))).toEqual([
    expect.stringMatching(/^ok +node +Node \d+\.\d+\.\d+; Servo .* needs >=/),
    expect.stringMatching(/^ok +project +\/.*; assets: 1, schedules: 0, sensors: 0$/),
    expect.stringMatching(/^ok +variables +all variables of resources and webhooks are set$/),
    expect.stringMatching(/^ok +store +\/.*\.servo; manifest \d+ of 2/),
    expect.stringMatching(/^ok +clock +2.*; no record is from the future$/),
    `ok  leader  process ${dev.pid} on ${os.hostname()} answers at ${dev.url}`,
  ])

  // What can be wrong is wrong at once. A server that is stopped writes nothing, so whatever changes is the doctor's doing.
  dev.kill('SIGSTOP')
  project.write('assets/b.ts', NEEDY)
  fs.chmodSync(project.file('.servo'), 0o755)
  const future = ulidFloor(Date.now() + 3 * DAY_MS)
  project.write(`.servo/${paths.segment(future)}`, '')
  const newest = fs
    .readdirSync(manifests)
    .filter((name) => name.endsWith('.json'))
    .sort()
    .at(-1)
  project.write(`.servo/${paths.manifests}${newest}`, '{"half":')
  const before = [contents(project.file('.servo')), contents(project.file('assets')), fs.readdirSync(project.dir)]
  const sick = await project.servo('doctor', '--json')
  expect([contents(project.file('.servo')), contents(project.file('assets')), fs.readdirSync(project.dir)]).toEqual(before)
  expect({ code: sick.code, stderr: sick.stderr }).toEqual({ code: 1, stderr: '' })
  const { ok, findings }: { ok: boolean; findings: Finding[] } = JSON.parse(sick.stdout)
  expect(ok).toBe(false)
  const wrong = findings.filter(({ level, area }) => level !== 'ok' && area !== 'disk')
  expect(wrong.map(({ level, area, message }) => `${level} ${area} ${message}`)).toEqual([
    expect.stringMatching(/^problem project assets\/b\.ts:4 .*nowhere/),
    expect.stringMatching(/^problem variables assets\/b\.ts:3 resource api needs SERVO_API_URL$/),
    expect.stringMatching(/^warning store \.servo is open to other users \(mode 755\)$/),
    expect.stringMatching(/^problem store .*manifests\/orchestration\/\d+\.json/),
    expect.stringMatching(/^warning clock the newest segment is dated .* days ahead of this clock/),
    `problem leader process ${dev.pid} on ${os.hostname()} runs the project but does not answer at ${dev.url}`,
  ])
  expect(wrong.filter(({ hint }) => !hint)).toEqual([])
})

test('servo doctor works outside a project, and says that a folder it was given is none', async () => {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'servo-nowhere-'))
  const [outside, named] = await Promise.all([
    servo(['doctor'], { cwd: dir }),
    servo(['doctor', '--project', path.join(dir, 'shop')], { cwd: dir }),
  ])
  fs.rmdirSync(dir)
  expect(outside.stdout).toMatch(/^ok +node .*\nwarning +project +no servo\.config\.ts in .*\n\S+ +disk /)
  expect({ code: outside.code, stderr: outside.stderr }).toEqual({ code: 0, stderr: '' })
  expect(named.stdout).toMatch(/^problem +project +folder not found: .*shop\. Check --project\.$/m)
  expect(named.code).toBe(1)
})
