import type { ObjectStore } from '../ports/object-store.ts'
import { checkScope, type Scope } from './paths.ts'

/** Sorts before every tenant. */
const FIRST_NAME = 'tenant='
/** Sorts after every name that Servo puts below a workspace. */
const LAST_NAME = 'z'.repeat(100)

const ROOT = /^tenant=([^/]+)\/workspace=([^/]+)\//

/** Other things may lie in the same store, with names that no scope has. */
function isScope(scope: Scope): boolean {
  try {
    checkScope(scope)
    return true
  } catch {
    return false
  }
}

/** The workspaces that a store holds. Skips from one to the next without listing what is inside. */
export async function listScopes(store: ObjectStore): Promise<Scope[]> {
  const scopes: Scope[] = []
  let after: string | undefined = FIRST_NAME
  while (after !== undefined) {
    const from: string = after
    after = undefined
    for await (const { path } of store.list('', { after: from })) {
      // Other things may lie in the same store; what sorts behind all tenants ends the search.
      if (!path.startsWith(FIRST_NAME)) break
      const [root, tenant_id = '', workspace_id = ''] = ROOT.exec(path) ?? []
      if (root === undefined) continue
      const scope = { tenant_id, workspace_id }
      if (isScope(scope)) scopes.push(scope)
      after = `${root}${LAST_NAME}`
      break
    }
  }
  return scopes
}
