import { fileURLToPath } from 'node:url'

export interface SourcePlace {
  readonly file: string | undefined
  readonly line: number | undefined
}

/** Enough for an asset that is made by a function that is called by a function. */
const FRAMES = 12

/**
 * Where the author wrote a definition: the outermost place in their own code, so that an asset made by a function of theirs
 * is found where that function is called.
 */
export function callerOf(ours: (...args: never[]) => unknown): SourcePlace {
  const limit = Error.stackTraceLimit
  Error.stackTraceLimit = FRAMES
  const holder: { stack?: string } = {}
  Error.captureStackTrace(holder, ours)
  // V8 formats the stack when it is first read, so read it before the limit is restored.
  const stack = holder.stack ?? ''
  Error.stackTraceLimit = limit
  let found: SourcePlace = { file: undefined, line: undefined }
  for (const place of placesIn(stack)) {
    // What called the module is Node; above that, in CommonJS, stand the modules that required this one.
    if (place.file.startsWith('node:')) break
    if (!place.file.includes('/node_modules/')) found = { file: place.file, line: place.line }
  }
  return found
}

export interface Frame {
  /** Of the function; empty at the top of a module. */
  readonly name: string
  readonly file: string
  readonly line: number
  readonly column: number
}

/** The places that a stack names, innermost first. */
export function placesIn(stack: string): Frame[] {
  return stack.split('\n').flatMap((text) => {
    const frame = /^\s+at (?:async )?(.*)$/.exec(text)?.[1]
    if (frame === undefined) return []
    const bracket = frame.endsWith(')') ? frame.lastIndexOf(' (') : -1
    const inBrackets = bracket === -1 ? frame : frame.slice(bracket + 2, -1)
    const [, where, line, column] = /^(.+):(\d+):(\d+)$/.exec(inBrackets) ?? []
    if (where === undefined) return []
    const name = bracket === -1 ? '' : frame.slice(0, bracket)
    return [{ name, file: pathOf(where), line: Number(line), column: Number(column) }]
  })
}

export const pathOf = (where: string): string => (where.startsWith('file:') ? fileURLToPath(where) : where)
