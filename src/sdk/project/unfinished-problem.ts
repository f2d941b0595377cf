import fs from 'node:fs'
import type { ProjectProblem } from '../../contract/project-manifest.ts'
import { relativePath } from './describe.ts'
import type { Unfinished } from './import-within.ts'
import { isInside, type Modules } from './modules.ts'

/** An await at the top level, which nobody indents. */
const TOP_AWAIT = /^(?:export\s+)?(?:(?:const|let|var)\s[^=]+=\s*)?(?:for\s+)?await\b/

/** Says which module does not finish loading: the one that awaits at its top level, if there is only one. */
export function unfinishedProblem(
  { why, afterMs }: Unfinished,
  imported: string,
  root: string,
  modules: Modules,
): ProjectProblem {
  const own = [...modules.reachedFrom(imported)].filter((file) => isInside(root, file) && !file.includes('node_modules'))
  const awaiting = own.flatMap((file) => {
    const line = fs
      .readFileSync(file, 'utf8')
      .split('\n')
      .findIndex((text) => TOP_AWAIT.test(text))
    return line < 0 ? [] : [{ file, line: line + 1 }]
  })
  const [place, other] = awaiting
  const named = place !== undefined && other === undefined ? place : { file: imported, line: undefined }
  const name = relativePath(root, named.file)
  const who = place === named || own.length === 1 ? name : `${name} (or a module it imports)`
  return {
    code: 'load_failed',
    message:
      why === 'never'
        ? `${who} has a top-level await that never settles`
        : `importing ${who} has not finished after ${afterMs / 1_000} s`,
    hint: 'Servo imports modules to see what they declare. Wait for nothing at the top of a module: do work in the bodies of assets, and open connections in resources.',
    file: name,
    ...(named.line !== undefined && { line: named.line }),
  }
}
