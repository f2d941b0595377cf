import type { ObjectStore } from '../ports/object-store.ts'
import { checkScope, type Scope } from './paths.ts'

/** Sorts after every name that Servo puts below a workspace. */
const LAST_NAME = 'z'.repeat(100)

const ROOT = /^tenant=([^/]+)\/workspace=([^/]+)\//

/** What is not a scope of ours may lie in the same store; its name need not be one. */
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
  let after = ''
  for (;;) {
    let next: string | undefined
    for await (const { path } of store.list('', after === '' ? {} : { after })) {
      next = path
      break
    }
    if (next === undefined) return scopes
    const [root, tenant_id, workspace_id] = ROOT.exec(next) ?? []
    if (root === undefined) after = next
    else {
      const scope = { tenant_id: tenant_id as string, workspace_id: workspace_id as string }
      if (isScope(scope)) scopes.push(scope)
      after = `${root}${LAST_NAME}`
    }
  }
}
