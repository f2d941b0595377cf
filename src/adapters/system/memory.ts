import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

let collect: (() => void) | undefined

/**
 * Collects all garbage, and returns what is free to the system. V8 does so by itself only when memory runs short, so that a process keeps for
 * days what one busy minute needed. Nothing else happens meanwhile: for a process that has nothing to do.
 */
export function giveMemoryBack(): void {
  if (collect === undefined) {
    setFlagsFromString('--expose-gc')
    const gc: (options: object) => void = runInNewContext('gc')
    collect = () => gc({ type: 'major', execution: 'sync', flavor: 'last-resort' })
  }
  collect()
}
