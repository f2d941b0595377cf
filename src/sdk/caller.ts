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
    if (!place.file.includes('/node_modules/')) found = place
  }
  return found
}

/** The places that a stack names, innermost first. */
export function placesIn(stack: string): { file: string; line: number }[] {
  return stack.split('\n').flatMap((text) => {
    const frame = /^\s+at (?:async )?(.*)$/.exec(text)?.[1]
    if (frame === undefined) return []
    const inBrackets = frame.endsWith(')') ? frame.slice(frame.lastIndexOf(' (') + 2, -1) : frame
    const [, where, line] = /^(.+):(\d+):\d+$/.exec(inBrackets) ?? []
    return where === undefined ? [] : [{ file: pathOf(where), line: Number(line) }]
  })
}

export const pathOf = (where: string): string => (where.startsWith('file:') ? fileURLToPath(where) : where)
