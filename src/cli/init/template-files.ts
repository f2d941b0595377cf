import { readdirSync, readFileSync } from 'node:fs'
import { join, sep } from 'node:path'
import { DAY_MS } from '../../lib/time.ts'
import { packageDir } from './own-package.ts'

export interface TemplateOptions {
  readonly name: string
  /** The folder of the assets, relative to the project. */
  readonly assets: string
  readonly now: Date
}

/** What stands in the template for what a user chooses: a project that is type-checked and tested as it is. */
const NAME = 'my-project'
const START = '2025-01-01'
/** A week of partitions: enough to see, and made in seconds. */
const DAYS = 7

/** The files of a new project by their paths, but for package.json. */
export function templateFiles({ name, assets, now }: TemplateOptions): ReadonlyMap<string, string> {
  const dir = join(packageDir, 'template')
  const start = new Date(now.getTime() - DAYS * DAY_MS).toISOString().slice(0, START.length)
  const entries = readdirSync(dir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  const files = entries.map((entry): [string, string] => {
    const file = join(entry.parentPath, entry.name)
    const path = file.slice(dir.length + 1).replaceAll(sep, '/')
    const text = readFileSync(file, 'utf8').replaceAll(NAME, name).replaceAll(START, start)
    // npm packs no .gitignore.
    return [
      path.replace('_gitignore', '.gitignore').replace(/^assets\//, `${assets}/`),
      text.replaceAll(/(?<=['`])assets(?=['/])/g, assets),
    ]
  })
  return new Map(files.sort(([a], [b]) => (a < b ? -1 : 1)))
}
