import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

type Collect = (options: object) => void

let collect: Collect | undefined

function gc(options: object): void {
  collect ??= exposed()
  collect(options)
}

function exposed(): Collect {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc')
}

/**
 * Collects all garbage, and returns what is free to the system. V8 does so by itself only when memory runs short, so that a process keeps for
 * days what one busy minute needed. Nothing else happens meanwhile: for a process that has nothing to do.
 */
export const giveMemoryBack = (): void => gc({ type: 'major', execution: 'sync', flavor: 'last-resort' })

/** Collects young garbage, which takes a few milliseconds, before work that should not be interrupted by it. */
export const makeRoom = (): void => gc({ type: 'minor', execution: 'sync' })
