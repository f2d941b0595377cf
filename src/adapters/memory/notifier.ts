import type { Listener, Notifier } from '../../ports/notifier.ts'

/** Connects parts of a process that share it. It may miss segments: a writer that has the store need not announce. */
export function memoryNotifier(): Notifier {
  const listeners = new Set<Listener>()
  return {
    announce(segment) {
      // Not within the call: the announcer has not finished what it is doing.
      for (const listener of listeners) queueMicrotask(() => listeners.has(listener) && listener.onSegments([segment]))
    },
    async listen(listener) {
      // Each listener gets an object of its own, so that one may listen twice and close one of the two.
      const own: Listener = { onSegments: (segments) => listener.onSegments(segments), onMissed: () => listener.onMissed() }
      listeners.add(own)
      return { missesNothing: false, close: () => void listeners.delete(own) }
    },
  }
}
