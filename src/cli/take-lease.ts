import { ServoError } from '../lib/error.ts'
import type { HeldLease, Leader } from '../ports/lease.ts'
import type { Components } from '../server/components.ts'
import { clientOf, LOOK_AT_LEASE_MS, SAY_AFTER_MS } from './find-leader.ts'
import { note } from './output.ts'

/** A leader that lives answers a challenge within milliseconds. */
const SAY_SILENT_AFTER_MS = 1_000
/** Commands that lead for a moment, such as `servo rebuild`, are challenged for a sign of life now and then: they may have been stopped. */
const ASK_EVERY_MS = 2_000

/** Claims the lease for a server. Requests that a command that leads for a while give way, and waits for it. */
export async function takeLease(components: Components, name: string): Promise<HeldLease> {
  const { lease, clock } = components
  const began = clock.monotonic()
  let said = false
  for (;;) {
    const before = await lease.leader()
    let isSilent = false
    const cancel = clock.after(SAY_SILENT_AFTER_MS, () => {
      if (before === undefined) return
      isSilent = true
      note(`waiting for process ${before.pid}, which runs this project and does not answer`)
    })
    const claim = await lease.claim({ name, term: 'standing' }).finally(cancel)
    if (claim.held) {
      if (isSilent) note(`process ${before?.pid} did not answer; this process took over`)
      return claim
    }
    const { leader } = claim
    if (leader.term === 'standing') throw alreadyRunning(leader)
    await askToGiveWay(components, leader)
    for (const asked = clock.monotonic(); clock.monotonic() - asked < ASK_EVERY_MS; ) {
      if ((await lease.leader())?.name !== leader.name) break
      if (!said && clock.monotonic() - began > SAY_AFTER_MS) {
        said = true
        note(`taking over from the command that runs this project (process ${leader.pid})`)
      }
      await clock.sleep(LOOK_AT_LEASE_MS)
    }
  }
}

/** A leader that has no address or has just ended cannot receive a request, nor can a stopped process. */
async function askToGiveWay(components: Components, { address, name }: Leader): Promise<void> {
  if (address === null) return
  const client = await clientOf(components, address)
  if (await client.isThere(name)) await client.handOver().catch(() => undefined)
}

function alreadyRunning({ pid, address }: Leader): ServoError {
  const where = address === null ? '' : ` at ${address}`
  return new ServoError('conflict', 'already_running', `this project is already running: process ${pid}${where}`, {
    hint: 'Use it (servo run …), or stop it first.',
    facts: { pid, url: address },
  })
}
