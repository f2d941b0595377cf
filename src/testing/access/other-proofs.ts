import { roles } from '../../api/access/roles.ts'
import { CSRF_HEADER, type Sessions } from '../../api/login/sessions.ts'
import type { OidcTokens } from '../../api/oidc/oidc-tokens.ts'
import type { ApiTokens } from '../../api/tokens/api-tokens.ts'
import type { tokenAccess } from '../../api/tokens/token-access.ts'
import { MINUTE_MS, SECOND_MS, toIso } from '../../lib/time.ts'
import { TestIssuer } from './oidc-issuer.ts'

interface ProofsOptions {
  readonly now: number
  readonly tokens: ApiTokens
  readonly oidc: OidcTokens
  readonly sessions: Sessions
  readonly access: ReturnType<typeof tokenAccess>
}

/** A token in the header of a program, or a cookie with all that a page of ours sends. */
export function proofOf(token: string | undefined): Record<string, string> {
  if (token === undefined) return {}
  return token.startsWith('servo_') && token.includes('=')
    ? { cookie: `theme=dark; ${token}`, origin: 'http://localhost', 'sec-fetch-site': 'same-origin', [CSRF_HEADER]: '1' }
    : { authorization: `Bearer ${token}` }
}

/** Tokens of an issuer, and cookies, of each role and of those whom nobody lets in half an hour later. The issuers stay open for that long. */
export async function otherProofs(ofRole: Readonly<Record<string, string>>, options: ProofsOptions) {
  const { now, tokens, oidc, sessions, access } = options
  const [issuer, other] = [await TestIssuer.open(), await TestIssuer.open()]
  const byRole = Object.fromEntries(roles.map((role) => [role, { groups: [role] }]))
  oidc.use([{ issuer: issuer.url, audience: ['servo'], roles: byRole, actor: 'sub' }])
  const claims = (role: string, minutes = 120) => ({
    sub: `a-${role}`,
    aud: 'servo',
    exp: (now + minutes * MINUTE_MS) / SECOND_MS,
    groups: [role],
  })
  const sessionOf = async (token = ''): Promise<string> => {
    const { cookie } = sessions.open(await access.bearer(token, new Headers()), new Request('http://localhost/'))
    return cookie.slice(0, cookie.indexOf(';'))
  }
  const proofs: Record<string, string> = {
    'expired OIDC': await issuer.sign(claims('admin', 1)),
    'OIDC of another issuer': await other.sign(claims('admin')),
    'OIDC for another audience': await issuer.sign({ ...claims('admin'), aud: 'billing' }),
    'forged cookie': `${(await sessionOf(ofRole['admin'])).slice(0, -8)}AAAAAAAA`,
    'cookie that was ended': await sessionOf(ofRole['admin']),
  }
  for (const role of roles) {
    const token = await issuer.sign(claims(role))
    proofs[`OIDC ${role}`] = token
    proofs[`cookie ${role}`] = await sessionOf(ofRole[role])
    proofs[`cookie of OIDC ${role}`] = await sessionOf(token)
  }
  const soon = await tokens.create({ name: 'soon', role: 'admin', expires_at: toIso(now + 20 * MINUTE_MS) }, 'ana')
  proofs['cookie of an expired token'] = await sessionOf(soon.token)
  const gone = await tokens.create({ name: 'gone-too', role: 'admin' }, 'ana')
  proofs['cookie of a revoked token'] = await sessionOf(gone.token)
  await tokens.revoke(gone.token_id, 'ana')
  sessions.end(new Request('http://localhost/', { method: 'POST', headers: proofOf(proofs['cookie that was ended']) }))
  const close = (): void => {
    issuer.close()
    other.close()
  }
  return { proofs, close }
}
