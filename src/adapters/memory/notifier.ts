import type { Listener, Notifier } from '../../ports/notifier.ts'

/** Between parts of a process that share the same value. It cannot hear everything: a writer that has the store need not announce. */
export function memoryNotifier(): Notifier {
  const listeners = new Set<Listener>()
  return {
    announce(segment) {
      // Not within the call: the announcer has not finished what it is doing.
      for (const listener of listeners) queueMicrotask(() => listeners.has(listener) && listener.heard([segment]))
    },
    async listen(listener) {
      // Each listener gets an object of its own, so that one may listen twice and close one of the two.
      const own: Listener = { heard: (segments) => listener.heard(segments), missed: () => listener.missed() }
      listeners.add(own)
      return { hearsEverything: false, close: () => void listeners.delete(own) }
    },
  }
}
