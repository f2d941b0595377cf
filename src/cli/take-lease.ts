import { ServoError } from '../lib/error.ts'
import type { HeldLease, Leader } from '../ports/lease.ts'
import type { Components } from '../server/components.ts'
import { clientOf } from './find-leader.ts'
import { note } from './output.ts'

const LOOK_EVERY_MS = 50

/** The lease of a server that stays. A command that leads only for a while is asked to give way, and waited for. */
export async function takeLease(components: Components, name: string): Promise<HeldLease> {
  const { lease, clock } = components
  const asked = new Set<string>()
  for (;;) {
    const claim = await lease.claim({ name, term: 'standing' })
    if (claim.held) return claim
    const { leader } = claim
    if (leader.term === 'standing') throw alreadyRunning(leader)
    if (leader.address !== null && !asked.has(leader.name)) {
      asked.add(leader.name)
      note(`taking over from the command that runs this project (process ${leader.pid})`)
      const client = await clientOf(components, leader.address)
      // One that has just ended, or is about to, need not be asked; one that was stopped does not hear.
      if (await client.isThere(leader.name)) await client.handOver().catch(() => undefined)
    }
    await clock.sleep(LOOK_EVERY_MS)
  }
}

function alreadyRunning({ pid, address }: Leader): ServoError {
  const where = address === null ? '' : ` at ${address}`
  return new ServoError('conflict', 'already_running', `process ${pid} runs this project already${where}`, {
    hint: 'Use it (servo run …), or stop it first.',
    facts: { pid, url: address },
  })
}
