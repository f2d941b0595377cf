import type { ObjectStore } from '../ports/object-store.ts'
import type { Scope } from './paths.ts'

/** Sorts after every name that Servo puts below a workspace. */
const LAST_NAME = 'z'.repeat(100)

const ROOT = /^tenant=([^/]+)\/workspace=([^/]+)\//

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
      scopes.push({ tenant_id: tenant_id as string, workspace_id: workspace_id as string })
      after = `${root}${LAST_NAME}`
    }
  }
}
