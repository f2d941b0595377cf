import { type Role, roles } from '../contract/roles.ts'
import { isObject } from '../lib/is-object.ts'
import { isSafeUrl } from '../lib/safe-url.ts'
import { withoutUndefined } from '../lib/without-undefined.ts'
import { type Bounds, type Duration, durationWithin } from './duration.ts'
import { show } from './invalid.ts'
import { checkOptionNames } from './option-names.ts'

/** Claims that a token must all have. A list names several values, of which one is enough; a claim that is a list must contain one. */
type Claims = Readonly<Record<string, ClaimValue | readonly ClaimValue[]>>
type ClaimValue = string | number | boolean

/** An issuer of OpenID Connect whose tokens count. */
export interface Oidc {
  /** As its tokens name it, such as `https://accounts.example.com`. Servo fetches its keys from there. */
  issuer: string
  /** Whom its tokens are meant for: what the issuer calls this server. */
  audience: string | readonly string[]
  /** The claims that give each role; the highest that a token has counts, and without any it is refused. */
  roles: { readonly [R in Role]?: Claims | 'everyone' }
  /** The claim that is put on record as the actor. Default: `'sub'`. `email` counts only if the issuer has verified it. */
  actor?: string
}

/** How much the server takes on before it refuses. */
export interface LimitsConfig {
  /** Requests of one caller. Default: 2000; twice as many at once. */
  requestsPerSecond?: number
  /** Requests of one address without a token that counts. Default: 50. */
  refusedPerSecond?: number
  /** Requests that are being answered. Default: 1000. */
  requestsInFlight?: number
  /** Answers that are sent bit by bit, such as the log of a run, and workers that wait for work. Default: 2000. */
  streams?: number
  /** Open connections. Default: 10000. */
  connections?: number
  /** How long a request may take to arrive. Default: `'30s'`. */
  requestTimeout?: Duration
}

export interface ServerConfig {
  /** Issuers whose tokens count besides API tokens. */
  oidc?: Oidc | readonly Oidc[]
  limits?: LimitsConfig
}

type Refuse = (what: string, hint: string) => never

const EXAMPLE =
  "Write oidc: { issuer: 'https://accounts.example.com', audience: 'servo', roles: { viewer: 'everyone', admin: { groups: 'data' } } }."
const timeoutBounds: Bounds = { least: '100ms', most: '1h' }
const MAX_LIMIT = 1_000_000
const MAX_ISSUERS = 10

const counts: readonly (keyof LimitsConfig)[] = [
  'requestsPerSecond',
  'refusedPerSecond',
  'requestsInFlight',
  'streams',
  'connections',
]

/** Refuses a server that could not be what its author means. */
export function checkServer(server: ServerConfig | undefined, refuse: Refuse): void {
  if (server === undefined) return
  if (isOther(server))
    refuse(`\`server\` of the config cannot be ${show(server)}`, 'Write server: { limits: { requestsPerSecond: 100 } }.')
  checkOptionNames('`server` of the config', server, ['oidc', 'limits'])
  const issuers = issuersOf(server)
  if (issuers.length > MAX_ISSUERS) refuse(`the config has ${issuers.length} issuers`, `Name ${MAX_ISSUERS} at most.`)
  for (const each of issuers) checkOidc(each, refuse)
  const names = issuers.map(({ issuer }) => issuer)
  const twice = names.find((name, i) => names.indexOf(name) < i)
  if (twice !== undefined) refuse(`the config has the issuer ${twice} twice`, 'Name all its audiences and roles in one place.')
  checkLimits(server.limits, refuse)
}

/** True for anything but an object of options. */
const isOther = (value: unknown): boolean => !isObject(value) || Array.isArray(value)

const issuersOf = ({ oidc = [] }: ServerConfig): readonly Oidc[] => [oidc].flat()

function checkOidc(oidc: Oidc, refuse: Refuse): void {
  if (isOther(oidc)) refuse(`\`server.oidc\` cannot be ${show(oidc)}`, EXAMPLE)
  checkOptionNames('`server.oidc`', oidc, ['issuer', 'audience', 'roles', 'actor'])
  const { issuer, audience, roles: wanted, actor } = oidc
  if (typeof issuer !== 'string' || !isSafeUrl(issuer) || /[?#]/.test(issuer))
    refuse(`\`issuer\` of server.oidc must be an https URL, not ${show(issuer)}`, EXAMPLE)
  const audiences = [audience].flat()
  if (audiences.length === 0 || audiences.some((each) => typeof each !== 'string' || each === ''))
    refuse(`\`audience\` of ${issuer} cannot be ${show(audience)}`, EXAMPLE)
  if (actor !== undefined && (typeof actor !== 'string' || actor === ''))
    refuse(`\`actor\` of ${issuer} must be the name of a claim, not ${show(actor)}`, "Write actor: 'email'.")
  if (isOther(wanted) || Object.keys(wanted).length === 0) refuse(`\`roles\` of ${issuer} gives nobody a role`, EXAMPLE)
  checkOptionNames(`\`roles\` of ${issuer}`, wanted, roles)
  for (const [role, claims] of Object.entries(wanted)) if (claims !== undefined) checkClaims(issuer, role, claims, refuse)
}

function checkClaims(issuer: string, role: string, claims: Claims | 'everyone', refuse: Refuse): void {
  if (claims === 'everyone') return
  const hint = `Write ${role}: { groups: ['data', 'platform'] }, or ${role}: 'everyone' for every user of the issuer.`
  if (isOther(claims) || Object.keys(claims).length === 0)
    refuse(`the claims for ${role} of ${issuer} cannot be ${show(claims)}`, hint)
  for (const [name, value] of Object.entries(claims)) {
    const values = [value].flat()
    if (values.length === 0 || values.some((each) => !['string', 'number', 'boolean'].includes(typeof each)))
      refuse(`the claim ${name} for ${role} of ${issuer} cannot be ${show(value)}`, hint)
  }
}

function checkLimits(limits: LimitsConfig | undefined, refuse: Refuse): void {
  if (limits === undefined) return
  if (isOther(limits)) refuse(`\`server.limits\` cannot be ${show(limits)}`, 'Write limits: { requestsPerSecond: 100 }.')
  checkOptionNames('`server.limits`', limits, [...counts, 'requestTimeout'])
  const { requestTimeout, ...numbers } = limits
  for (const [name, value] of Object.entries(numbers))
    if (value !== undefined && !(Number.isInteger(value) && value >= 1 && value <= MAX_LIMIT))
      refuse(`\`server.limits.${name}\` cannot be ${show(value)}`, `Write a whole number from 1 to ${MAX_LIMIT}.`)
  if (requestTimeout !== undefined) durationWithin(requestTimeout, timeoutBounds, '`server.limits.requestTimeout`')
}

/** What the manifest of the project has of it. */
export function describeServer(server: ServerConfig) {
  const { requestTimeout, ...numbers } = server.limits ?? {}
  return {
    oidc: issuersOf(server).map(({ issuer, audience, roles: wanted, actor }) => ({
      issuer,
      audience: [audience].flat(),
      roles: Object.fromEntries(
        Object.entries(wanted)
          .filter(([, claims]) => claims !== undefined)
          .map(([role, claims]) => [role, claims === 'everyone' ? claims : listed(claims)]),
      ),
      ...(actor !== undefined && { actor }),
    })),
    limits: {
      ...withoutUndefined({
        requests_per_second: numbers.requestsPerSecond,
        refused_per_second: numbers.refusedPerSecond,
        requests_in_flight: numbers.requestsInFlight,
        streams: numbers.streams,
        connections: numbers.connections,
      }),
      ...(requestTimeout !== undefined && {
        request_timeout_ms: durationWithin(requestTimeout, timeoutBounds, '`server.limits.requestTimeout`'),
      }),
    },
  }
}

const listed = (claims: Claims): Record<string, ClaimValue[]> =>
  Object.fromEntries(Object.entries(claims).map(([name, value]) => [name, [value].flat()]))
