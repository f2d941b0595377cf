import { notifierConformance } from '../../testing/conformance/notifier.ts'
import { memoryNotifier } from './notifier.ts'

notifierConformance('a notifier in memory', async () => {
  const notifier = memoryNotifier()
  return { join: () => notifier, write: async () => undefined }
})
