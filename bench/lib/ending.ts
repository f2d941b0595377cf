type Cleanup = () => unknown

const cleanups: Cleanup[] = []
let ended: Promise<void> | undefined

/** What a benchmark started, it ends, however it comes to its end itself: by `end`, by an error, or by Ctrl-C. */
export function atEnd(cleanup: Cleanup): void {
  cleanups.push(cleanup)
}

/** Ends what was started, the newest first. */
export function end(): Promise<void> {
  ended ??= endAll()
  return ended
}

async function endAll(): Promise<void> {
  for (const cleanup of cleanups.splice(0).reverse()) {
    try {
      await cleanup()
    } catch (error) {
      console.error(error)
      process.exitCode = 1
    }
  }
}

for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const) {
  process.on(signal, () => void end().then(() => process.exit(code)))
}

process.on('uncaughtException', (error) => {
  // What was under way when everything was ended fails because of that.
  if (ended !== undefined) return
  console.error(error)
  void end().then(() => process.exit(1))
})
