import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { MARKER } from '../../worker/marked.ts'
import { makeScratchFolder } from '../../worker/scratch-folder.ts'
import { endOrphans } from './orphans.ts'

const clock = { sleep: async () => undefined }

/** A temporary folder of a worker of the server with this marker. */
async function folderOf(marker: string): Promise<string> {
  process.env[MARKER] = `${marker}:1:`
  try {
    const folder = await makeScratchFolder('attempt')
    onTestFinished(() => fs.rmSync(folder, { recursive: true, force: true }))
    fs.writeFileSync(path.join(folder, 'rows.csv'), 'id\n')
    return folder
  } finally {
    delete process.env[MARKER]
  }
}

test('a start removes the temporary folders of attempts that were killed, of its own project alone', async () => {
  const [one, other] = [0, 1].map(() => {
    const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'servo-orphans-'))
    onTestFinished(() => fs.rmSync(dir, { recursive: true, force: true }))
    return dir
  }) as [string, string]
  const [left, foreign] = [await folderOf(await endOrphans(one, clock)), await folderOf(await endOrphans(other, clock))]
  const marker = await endOrphans(one, clock)
  expect([left, foreign].map((folder) => fs.existsSync(folder))).toEqual([false, true])
  expect(fs.existsSync(await folderOf(marker))).toBe(true)
})
