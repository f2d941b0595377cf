import type { BlockList } from 'node:net'
import type { Access } from '../api/access/access.ts'
import type { OwnNames } from '../api/access/strangers.ts'
import { RequestLimits } from '../api/limits/limits.ts'
import { LoginLinks } from '../api/login/login-links.ts'
import { loginRoutes } from '../api/login/login-routes.ts'
import { Sessions } from '../api/login/sessions.ts'
import { OidcTokens } from '../api/oidc/oidc-tokens.ts'
import type { Route } from '../api/routing/route.ts'
import { ApiTokens } from '../api/tokens/api-tokens.ts'
import { tokenAccess } from '../api/tokens/token-access.ts'
import type { ServerSettings } from '../contract/server-settings.ts'
import type { WorkspaceSecrets } from '../ports/secrets.ts'
import type { Components } from './components.ts'

/** Where a server is reached from, besides its own machine. */
export interface Reach extends Pick<OwnNames, 'publicUrl' | 'byAddress'> {
  /** Proxies that are believed what they say of callers. */
  readonly proxies?: BlockList | undefined
}

interface FrontDoorOptions {
  readonly components: Pick<Components, 'store' | 'scope' | 'clock' | 'random'>
  readonly secrets: Pick<WorkspaceSecrets, 'api_token'>
  readonly reach: Reach
  readonly onTrouble?: ((error: unknown) => void) | undefined
}

/** Names that every server goes by on its own machine. */
const LOOPBACK = ['127.0.0.1', 'localhost', '[::1]']

/** Who gets in, by which name, and how many at a time. */
export class FrontDoor {
  readonly tokens: ApiTokens
  readonly access: Access
  readonly limits: RequestLimits
  /** Routes by which browsers sign in. */
  readonly login: readonly Route[]
  readonly own: OwnNames
  /** Where the server is reached from. */
  readonly reach: Reach
  readonly #oidc: OidcTokens

  constructor({ components, secrets, reach, onTrouble }: FrontDoorOptions) {
    const { clock, random } = components
    const tokens = new ApiTokens(components)
    const oidc = new OidcTokens({ clock, onTrouble: (error) => onTrouble?.(error) })
    const sessions = new Sessions({ secret: secrets.api_token, clock, random, tokens, oidc })
    this.tokens = tokens
    this.#oidc = oidc
    this.limits = new RequestLimits(clock)
    const access = tokenAccess(secrets.api_token, tokens, { oidc, sessions })
    this.access = access
    this.login = loginRoutes({ access, sessions, links: new LoginLinks(clock, random), clock })
    this.own = { hosts: LOOPBACK, publicUrl: reach.publicUrl, byAddress: reach.byAddress }
    this.reach = reach
  }

  /** Follows what the project says from now on. */
  use({ oidc, limits }: ServerSettings): void {
    this.#oidc.use(oidc)
    this.limits.use(limits)
  }

  /** True if somebody besides the user of the machine can get in. */
  async knowsCallers(): Promise<boolean> {
    return this.#oidc.isUsed || (await this.tokens.hasActive())
  }
}
