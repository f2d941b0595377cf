import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { projectOf } from './support/project.ts'

const LEASE = '.servo/tenant=default/workspace=default/lease'

test.each([
  ['a pipe is in the place of a claim', 'mkfifo', `${LEASE}/000000000001.json`],
  ['a folder is in the place of a claim', 'mkdir', `${LEASE}/000000000001.json`],
  ['a symlink to nothing is in the place of the folder', 'ln -s nothing', LEASE],
])('where %s of the lease, a command says at once what to delete', async (_, make, place) => {
  const project = projectOf({
    'assets/one.ts': "import { asset } from 'servo-flow'\nexport const one = asset('one', { run: () => 1 })\n",
  })
  const file = project.file(place)
  fs.mkdirSync(path.dirname(file), { recursive: true })
  execFileSync('sh', ['-c', `${make} '${file}'`])
  const command = project.begin(['run', 'one'])
  // Half a minute is for a busy machine; one that waits for a pipe waits for ever, and hears no other signal.
  const stuck = setTimeout(() => command.kill('SIGKILL'), 30_000)
  const { code, stdout, stderr } = await command.ended
  clearTimeout(stuck)
  expect(stderr).toContain(`\nhint: Delete ${file} while no server runs.\n`)
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
})
