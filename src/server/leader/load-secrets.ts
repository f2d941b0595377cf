import { createHmac } from 'node:crypto'
import { Paths } from '../../engine/paths.ts'
import { ServoError } from '../../lib/error.ts'
import { canonicalJson } from '../../lib/json.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import type { Secret, WorkspaceSecrets } from '../../ports/secrets.ts'
import type { Components } from '../components.ts'

const PURPOSES = ['run_ids', 'task_tokens'] as const
type Purpose = (typeof PURPOSES)[number]

export interface LoadedSecrets extends WorkspaceSecrets {
  /** There had been others, and they are gone. */
  readonly replaced: boolean
}

/**
 * The secrets of a workspace, for whoever leads it: made on first use. Beside the state lies a fingerprint of each, so that a
 * secret which is not the one that was used before is noticed. Secrets that are gone are replaced under a new id, which harms
 * nothing on record: runs keep their ids, and a run key that was used is answered from the index of keys.
 */
export async function loadSecrets({
  secrets,
  store,
  scope,
  random,
}: Pick<Components, 'secrets' | 'store' | 'scope' | 'random'>): Promise<LoadedSecrets> {
  const folder = `${new Paths(scope).root}secrets/`
  let known = await secrets.read()
  let replaced = false
  if (known === undefined) {
    const used = await idsIn(store, folder)
    replaced = used.length > 0
    const id = `local-${1 + Math.max(0, ...used.map((each) => Number(/^local-(\d+)$/.exec(each)?.[1] ?? 0)))}`
    const value = (): string => Buffer.from(random(32)).toString('base64url')
    known = await secrets.create({
      run_ids: { id, value: value() },
      api_token: value(),
      task_tokens: { id, value: value() },
    })
  }
  for (const purpose of PURPOSES) await compare(store, folder, purpose, known[purpose])
  return { ...known, replaced }
}

async function idsIn(store: ObjectStore, folder: string): Promise<string[]> {
  const ids: string[] = []
  for await (const { path } of store.list(folder)) ids.push(path.slice(path.indexOf('-', folder.length) + 1, -'.json'.length))
  return ids
}

/** Refuses a secret that is not the one which had this id before; notes one that is new. */
async function compare(store: ObjectStore, folder: string, purpose: Purpose, secret: Secret): Promise<void> {
  const path = `${folder}${purpose}-${secret.id}.json`
  // One-way: whoever reads the state learns nothing of the secret.
  const hmac_sha256 = createHmac('sha256', secret.value).update(`servo:fingerprint:${purpose}:${secret.id}`).digest('hex')
  const bytes = Buffer.from(canonicalJson({ hmac_sha256 }))
  const stored = (await store.get(path)) ?? ((await store.create(path, bytes)) === 'written' ? bytes : await store.get(path))
  if (stored !== undefined && Buffer.compare(stored, bytes) === 0) return
  throw new ServoError(
    'corrupt',
    'secrets_altered',
    `the secret ${secret.id} for ${purpose} is not the one that was used before`,
    {
      hint: 'Restore the secrets of this project, or move the file away: then new ones are made. Runs keep their ids.',
      facts: { purpose, id: secret.id },
    },
  )
}
