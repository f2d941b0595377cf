import { createHash, randomBytes } from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'
import type { TestProject } from 'vitest/node'
import { bundle } from '../scripts/bundle.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The command of the built package: what `servo` is for users. */
    servoMain: string
  }
}

const root = path.resolve(import.meta.dirname, '..')
/** Packages are found from here as from where ours is installed. */
const builds = path.join(root, 'node_modules', '.servo-builds')
/** No run of the tests takes so long: a build of this age is not used any more. */
const OLD_MS = 24 * 60 * 60_000

/** Builds the package for tests that start processes: they prove what people run, which starts in half the time of the sources. */
export default async function setup(project: TestProject): Promise<void> {
  removeOld()
  project.provide('servoMain', await builtMain())
  project.onTestsRerun(async () => project.provide('servoMain', await builtMain()))
}

/** A folder for each content: what is compiled stays cached, and another run of the tests finds its own. */
async function builtMain(): Promise<string> {
  const bundled = (await bundle()).map(({ name, code }) => ({ name: `dist/${name}`, code }))
  const files = [
    ...bundled,
    ...filesIn('template'),
    { name: 'package.json', code: fs.readFileSync(path.join(root, 'package.json'), 'utf8') },
  ]
  const version = createHash('sha256').update(JSON.stringify(files)).digest('hex').slice(0, 16)
  const dir = path.join(builds, version)
  if (!fs.existsSync(dir)) {
    const draft = `${dir}-${randomBytes(6).toString('hex')}`
    for (const { name, code } of files) write(path.join(draft, name), code)
    try {
      fs.renameSync(draft, dir)
    } catch (error) {
      // Another run of the tests was faster.
      fs.rmSync(draft, { recursive: true })
      if (!fs.existsSync(dir)) throw error
    }
  }
  fs.utimesSync(dir, new Date(), new Date())
  return path.join(dir, 'dist', 'cli', 'bin.js')
}

/** What the package ships as it is. */
function filesIn(folder: string): { name: string; code: string }[] {
  const entries = fs.readdirSync(path.join(root, folder), { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => path.join(parentPath, name))
    .map((file) => ({ name: path.relative(root, file), code: fs.readFileSync(file, 'utf8') }))
}

function write(file: string, code: string): void {
  fs.mkdirSync(path.dirname(file), { recursive: true })
  fs.writeFileSync(file, code)
}

function removeOld(): void {
  fs.mkdirSync(builds, { recursive: true })
  for (const name of fs.readdirSync(builds)) {
    const dir = path.join(builds, name)
    if (Date.now() - (fs.statSync(dir, { throwIfNoEntry: false })?.mtimeMs ?? 0) > OLD_MS)
      fs.rmSync(dir, { recursive: true, force: true })
  }
}
