import { mkdirSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { errnoOf, OWN_FILE, OWN_FOLDER } from './disk.ts'
import { explainFailure } from './failure.ts'

/** Makes the folder of the state unless it is there. Git leaves out what is in it. */
export function makeStateFolder(dir: string): void {
  try {
    mkdirSync(dir, OWN_FOLDER)
    writeFileSync(join(dir, '.gitignore'), '*\n', { mode: OWN_FILE })
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return
    throw explainFailure(error, { verb: 'create', path: basename(dir), dir: dirname(dir) })
  }
}
