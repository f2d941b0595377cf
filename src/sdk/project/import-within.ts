/** A module that takes longer than this is worth a word: whoever waits sees nothing else. */
const SLOW_MS = 5_000
/** Longer than any package takes on a busy machine. What a module still awaits then will hardly come. */
const MAX_MS = 30_000

export interface ImportLimits {
  readonly slowMs?: number
  readonly maxMs?: number
  onSlow(): void
}

/** Why a module has not been imported: it took too long, or nothing is left that could ever settle what it awaits. */
export class Unfinished {
  readonly why: 'too_long' | 'never'
  readonly afterMs: number

  constructor(why: 'too_long' | 'never', afterMs: number) {
    this.why = why
    this.afterMs = afterMs
  }
}

/** Imports a module, unless what it awaits at its top level never comes: then Node would wait for ever, or end without a word. */
export async function importWithin<T>(
  load: () => Promise<T>,
  { slowMs = SLOW_MS, maxMs = MAX_MS, onSlow }: ImportLimits,
): Promise<T | Unfinished> {
  const given = Promise.withResolvers<Unfinished>()
  const slow = setTimeout(onSlow, slowMs).unref()
  const end = setTimeout(() => given.resolve(new Unfinished('too_long', maxMs)), maxMs).unref()
  // Node is about to end, because no timer, file or socket is open: nothing can wake the module up any more.
  const onStuck = (): void => given.resolve(new Unfinished('never', 0))
  process.once('beforeExit', onStuck)
  try {
    return await Promise.race([load(), given.promise])
  } finally {
    clearTimeout(slow)
    clearTimeout(end)
    process.off('beforeExit', onStuck)
  }
}
