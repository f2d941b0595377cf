import { secretsConformance } from '../../testing/conformance/secrets.ts'
import { memorySecrets } from './secrets.ts'

secretsConformance('secrets in memory', async () => {
  const secrets = memorySecrets()
  return { join: () => secrets }
})
