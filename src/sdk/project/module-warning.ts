/** Node's own words about a file that it takes for a script. The problem `not_a_module` says the same, with what to do. */
const NOT_A_MODULE = /^Failed to load the ES module: /

let isHidden = false

/** Keeps that warning of Node from the output of this process; all others are shown as before. */
export function hideModuleWarning(): void {
  if (isHidden) return
  isHidden = true
  const shown = process.listeners('warning')
  process.removeAllListeners('warning')
  process.on('warning', (warning) => {
    if (!NOT_A_MODULE.test(warning.message)) for (const listener of shown) listener.call(process, warning)
  })
}
