import { Paths } from '../../engine/paths.ts'
import { ServoError } from '../../lib/error.ts'
import { hmacSha256 } from '../../lib/hash.ts'
import type { WorkspaceSecrets } from '../../ports/secrets.ts'
import type { Components } from '../components.ts'

type LoadSecretsOptions = Pick<Components, 'secrets' | 'store' | 'scope' | 'random'>

/** The folder in which the workspace keeps fingerprints of its secrets. */
const fingerprints = ({ scope }: Pick<Components, 'scope'>): string => `${new Paths(scope).root}secrets/`

export interface LoadedSecrets {
  readonly secrets: WorkspaceSecrets
  /**
   * `first` for a workspace that had none, `new` for one whose secrets are gone: then the tokens of attempts under way on other
   * workers are void, and so is the token that programs of this machine had.
   */
  readonly made: 'first' | 'new' | undefined
}

const PURPOSES = ['run_ids', 'task_tokens'] as const
const NUMBERED = /-local-(\d+)\.json$/

/**
 * The secrets of a workspace, for its leader: made if there are none, and compared with the fingerprints that the workspace keeps
 * under their ids. A fingerprint does not reveal its secret. So altered secrets are noticed, and new ones get ids that were
 * never used: so the products of old and new secrets can be distinguished.
 */
export async function loadSecrets(options: LoadSecretsOptions): Promise<LoadedSecrets> {
  const { secrets } = options
  let made: LoadedSecrets['made']
  for (;;) {
    const found = await secrets.read()
    if (found !== undefined) {
      await checkFingerprints(found, options)
      return { secrets: found, made }
    }
    const used = await usedNumbers(options)
    // If another process was quicker, its secrets are read.
    const outcome = await secrets.create(newSecrets(`local-${Math.max(0, ...used) + 1}`, options.random))
    if (outcome === 'written') made = used.length === 0 ? 'first' : 'new'
  }
}

function newSecrets(id: string, random: (length: number) => Uint8Array): WorkspaceSecrets {
  const value = (): string => Buffer.from(random(32)).toString('base64url')
  return { run_ids: { id, value: value() }, api_token: value(), task_tokens: { id, value: value() } }
}

/** The numbers of all secrets that were ever made here; 0 for a secret whose id has another form. */
async function usedNumbers(options: LoadSecretsOptions): Promise<number[]> {
  const numbers: number[] = []
  for await (const { path } of options.store.list(fingerprints(options))) numbers.push(Number(NUMBERED.exec(path)?.[1] ?? 0))
  return numbers
}

async function checkFingerprints(secrets: WorkspaceSecrets, options: LoadSecretsOptions): Promise<void> {
  const { store } = options
  for (const purpose of PURPOSES) {
    const { id, value } = secrets[purpose]
    const path = `${fingerprints(options)}${purpose}-${id}.json`
    const bytes = Buffer.from(`${JSON.stringify({ fingerprint: fingerprintOf(purpose, value) })}\n`)
    // Secrets that are older than fingerprints get theirs now.
    const recorded =
      (await store.get(path)) ?? ((await store.create(path, bytes)) === 'written' ? bytes : await store.get(path))
    if (recorded === undefined || !bytes.equals(recorded)) throw secretAltered(purpose, id)
  }
}

function fingerprintOf(purpose: string, value: string): string {
  return Buffer.from(hmacSha256(value, `servo fingerprint of ${purpose}`)).toString('hex')
}

export const secretsReplaced = (): ServoError =>
  new ServoError('unavailable', 'secrets_replaced', 'the secrets of this project were missing, so Servo created new ones', {
    hint: 'Runs keep their ids. Tokens of remote workers are no longer valid: their attempts are given up and tried again.',
  })

function secretAltered(purpose: string, id: string): ServoError {
  return new ServoError(
    'corrupt',
    'secrets_altered',
    `the secret ${id} for ${purpose} is not the one that this workspace used before`,
    {
      hint: 'Restore the file of secrets, or delete it: Servo then creates new secrets, and tokens of remote workers are no longer valid.',
      facts: { purpose, id },
    },
  )
}
