import { expect, test } from 'vitest'
import { memoryComponents } from '../testing/memory-components.ts'
import { VirtualClock } from '../testing/virtual-clock.ts'
import { withLeader } from './find-leader.ts'

/** Time passes for whoever waits for it. */
class Impatient extends VirtualClock {
  override sleep(ms: number): Promise<void> {
    return this.advance(ms)
  }
}

test('a leader that lives and cannot be reached is not waited for: where it runs is said', async () => {
  const components = memoryComponents(new Impatient())
  const secret = { id: 'a', value: 'a'.repeat(32) }
  await components.secrets.create({ run_ids: secret, api_token: secret.value, task_tokens: secret })
  const leader = await components.lease.claim({ name: 'server', term: 'standing' })
  if (!leader.held) throw new Error('somebody else leads')
  // As from a container with a network of its own: nobody listens there.
  await leader.announce('http://127.0.0.1:1')
  const nothing = async (): Promise<never> => expect.unreachable()
  await expect(withLeader(components, nothing, nothing)).rejects.toMatchObject({
    kind: 'unavailable',
    code: 'leader_unreachable',
    message: expect.stringContaining(`process ${process.pid} on memory`),
  })
})
