import type { ServoClient } from '../../../client/client.ts'
import { ServoError } from '../../../lib/error.ts'
import { findLeader } from '../../find-leader.ts'
import { note, print, printJson } from '../../output.ts'
import { componentsOf, currentUser, findProject, type ProjectFlags } from '../../project.ts'
import { remoteServer } from '../../remote/remote-server.ts'

/** Prints a link that signs a browser in, once, as whoever runs this command. */
export async function loginCommand(flags: ProjectFlags): Promise<void> {
  const server = await serverOf(flags)
  const { path, expires_at } = await server.loginLink(currentUser())
  const url = `${server.url}${path}`
  if (flags.json) printJson({ url, expires_at })
  else {
    print(url)
    note('open it in a browser within ten minutes; it counts once')
  }
}

async function serverOf(flags: ProjectFlags): Promise<ServoClient> {
  const remote = remoteServer(flags)
  if (remote !== undefined) return remote
  const leader = await findLeader(await componentsOf(findProject(flags)))
  if (leader !== undefined) return leader
  throw new ServoError('unavailable', 'no_server', 'no server of this project is running', {
    hint: 'Start one with servo dev or servo start.',
  })
}
