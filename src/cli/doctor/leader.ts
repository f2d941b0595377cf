import type { LocalComponents } from '../../server/components.ts'
import { clientOf } from '../find-leader.ts'
import { type Finding, fine, problem, warning } from './finding.ts'

/** Who leads the project, and whether it answers. */
export async function leaderFindings(components: LocalComponents): Promise<Finding[]> {
  const leader = await components.lease.leader()
  if (leader === undefined) return [fine('leader', 'no server is running (servo dev starts one)')]
  const { address, name, pid, host, term } = leader
  const who = `process ${pid} on ${host}`
  if (address === null) {
    if (term === 'brief') return [fine('leader', `a short command (${who})`)]
    return [warning('leader', `a server is starting (${who})`, 'Wait for it. If it does not finish, check its output.')]
  }
  const client = await clientOf(components, address)
  if (await client.isThere(name)) return [fine('leader', `${who} answers at ${address}`)]
  return [
    problem(
      'leader',
      `${who} runs the project but does not answer at ${address}`,
      `Check its output, or stop it there: kill ${pid}. The next servo dev replaces a server that gives no sign of life.`,
    ),
  ]
}
