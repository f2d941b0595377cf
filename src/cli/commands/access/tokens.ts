import { makeStateFolder } from '../../../adapters/fs/state-folder.ts'
import type { Role } from '../../../api/access/roles.ts'
import { ApiTokens } from '../../../api/tokens/api-tokens.ts'
import { type ListedToken, newTokenBody, type TokensApi } from '../../../api/tokens/token-contract.ts'
import { toIso } from '../../../lib/time.ts'
import { durationMs } from '../../../sdk/duration.ts'
import type { Cell } from '../../columns.ts'
import { badFlag } from '../../flags.ts'
import { colours, headsOf, note, print, printable, printJson, printTable } from '../../output.ts'
import { componentsOf, currentUser, findProject, type ProjectFlags } from '../../project.ts'
import { remoteServer } from '../../remote/remote-server.ts'
import { localTime } from '../../show-run.ts'

export interface CreateFlags extends ProjectFlags {
  role: Role
  name: string
  expires?: string
}

/** Makes a token, and prints its secret: the only time that anybody sees it. */
export async function createToken(flags: CreateFlags, now: Date): Promise<void> {
  const { name, role } = flags
  const expires = expiresAt(flags.expires, now)
  const body = newTokenBody.safeParse({ name, role, ...(expires !== undefined && { expires_at: expires }) })
  if (!body.success) throw badFlag(`invalid value '${name}' for --name`, `It ${body.error.issues[0]?.message}.`)
  const made = await (await tokensOf(flags, makeStateFolder)).create(body.data, currentUser())
  if (flags.json) {
    printJson(made)
    return
  }
  print(made.token)
  const until = made.expires_at === null ? 'never expires' : `expires ${localTime(made.expires_at)}`
  note(`${made.token_id}: role ${made.role}, ${until}. Keep it safe: it is not shown again`)
}

/** The moment that `--expires` means; null for never, undefined to leave it to the server. */
function expiresAt(expires: string | undefined, now: Date): string | null | undefined {
  if (expires === undefined) return undefined
  if (expires === 'never') return null
  if (!/^\d+[smhd]$/.test(expires))
    throw badFlag(`invalid value '${expires}' for --expires`, 'Use a duration such as 12h or 30d, or never.')
  return toIso(now.getTime() + durationMs(expires, '--expires'))
}

const HEADS = headsOf(['id', 'status', 'role', 'expires', 'created', 'by', 'name'])
const PAINTS = { active: colours.green, expired: colours.dim, revoked: colours.red } as const

export async function listTokens(flags: ProjectFlags): Promise<void> {
  const found = await (await tokensOf(flags)).list()
  if (flags.json) printJson(found)
  else if (found.length > 0) printTable(HEADS, found.map(tokenCells))
  else print('no tokens yet; servo tokens create makes one')
}

const tokenCells = (token: ListedToken): Cell[] => [
  { text: token.token_id },
  { text: token.status, paint: PAINTS[token.status] },
  { text: token.role },
  { text: token.expires_at === null ? 'never' : localTime(token.expires_at) },
  { text: localTime(token.created_at) },
  { text: printable(token.created_by), paint: colours.dim },
  { text: printable(token.name) },
]

export async function revokeToken(id: string, flags: ProjectFlags): Promise<void> {
  const revoked = await (await tokensOf(flags)).revoke(id, currentUser())
  if (flags.json) printJson(revoked)
  else print(`${revoked.token_id} is revoked`)
}

/** Without the address of a server these are the tokens of the project. They are files, so this needs no server: whoever can write to the folder may do everything with it already. */
async function tokensOf(flags: ProjectFlags, prepare: (dir: string) => void = () => undefined): Promise<TokensApi> {
  const remote = remoteServer(flags)
  if (remote !== undefined) return remote.tokens
  const components = await componentsOf(findProject(flags))
  prepare(components.servoDir)
  return new ApiTokens(components)
}
