import fs from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { projectOf, type TestProject } from './support/project.ts'
import type { Ran, Servo } from './support/servo.ts'

const ONE = `import { asset } from 'servo-flow'
export const quick = asset('quick', { run: () => 1 })
`

/** Five seconds on an idle machine; what hangs takes for ever. */
const BOUND_MS = 15_000

/** What became of a command, or undefined if it is still there after the bound. */
async function endedSoon(command: Servo): Promise<Ran | undefined> {
  return await Promise.race([command.ended, sleep(BOUND_MS, undefined, { ref: false })])
}

/** A project that ran once; with the id of the run that has the key `first`. */
async function ranOnce(): Promise<{ project: TestProject; runId: string }> {
  const project = projectOf({ 'assets/one.ts': ONE })
  const { run_id: runId } = await project.json('run', 'quick', '--key', 'first')
  return { project, runId }
}

async function refused(project: TestProject): Promise<string> {
  const dev = project.begin(['dev', '--port', '0'])
  const ran = await endedSoon(dev)
  expect(ran, `it goes on without a word:\n${dev.shown}`).toBeDefined()
  expect(ran?.code).not.toBe(0)
  expect(ran?.stdout).toBe('')
  return ran?.stderr ?? ''
}

test('a server whose secrets cannot be read ends at once, and says which file and what to do', async () => {
  const { project } = await ranOnce()
  fs.rmSync(project.secrets)
  fs.mkdirSync(project.secrets)
  expect(await refused(project)).toMatch(/^error: .*secrets\.json.*\nhint: /)
})

test('a server and a command whose secrets are a symlink to nothing end at once with 3, and say which file', async () => {
  const project = projectOf({ 'assets/one.ts': ONE })
  fs.mkdirSync(path.dirname(project.secrets), { recursive: true })
  fs.symlinkSync('nothing', project.secrets)
  for (const args of [
    ['dev', '--port', '0'],
    ['run', 'quick'],
  ]) {
    const ran = await endedSoon(project.begin(args))
    expect(ran?.stderr).toMatch(/^error: .*secrets\.json.*\nhint: /)
    expect(ran?.code).toBe(3)
  }
})

test('a server whose secrets are cut off ends at once, and says to restore them', async () => {
  const { project } = await ranOnce()
  const whole = fs.readFileSync(project.secrets)
  fs.writeFileSync(project.secrets, whole.subarray(0, whole.length / 2))
  expect(await refused(project)).toMatch(/^error: .*secrets\.json.*\nhint: Restore the file/)
})

test('a server whose secrets have another value under the same name ends at once, and says to restore them', async () => {
  const { project } = await ranOnce()
  const secrets = JSON.parse(fs.readFileSync(project.secrets, 'utf8')) as { run_ids: { id: string; value: string } }
  const value = [...secrets.run_ids.value].reverse().join('')
  fs.writeFileSync(project.secrets, JSON.stringify({ ...secrets, run_ids: { ...secrets.run_ids, value } }))
  expect(await refused(project)).toMatch(/\nhint: .*[Rr]estore/)
})

test('[T2] secrets that were deleted are made anew, which is said, and a key that was used before still means its run', async () => {
  const { project, runId } = await ranOnce()
  fs.rmSync(project.secrets)
  const dev = await project.dev()
  expect(await project.json('run', 'quick', '--key', 'first', '--detach')).toMatchObject({ run_id: runId, created: false })
  expect(await project.json('runs', 'show', runId)).toMatchObject({ run: { state: 'SUCCEEDED' } })
  dev.kill('SIGINT')
  expect((await dev.ended).stderr).toMatch(/secrets .* were missing, so Servo created new ones/)
})
