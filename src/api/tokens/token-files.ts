import type { z } from 'zod'
import { checksummedJson, readChecksummed } from '../../engine/files/checksummed-json.ts'
import { Paths, type Scope } from '../../engine/paths.ts'
import { isServoError, ServoError } from '../../lib/error.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { type Revocation, revocation, type TokenRecord, tokenRecord } from './token-contract.ts'

/** Which tokens there are, and which of them were revoked. */
export interface TokenNames {
  readonly made: ReadonlySet<string>
  readonly revoked: ReadonlySet<string>
}

const FILE = /^(tok_[a-z2-7]{16})(\.revoked)?\.json$/

/** True for the id of a token, which is part of a path. */
export const isTokenId = (text: string): boolean => /^tok_[a-z2-7]{16}$/.test(text)

/** The files of the tokens of a workspace. Each is created once and never changes; a second one beside it revokes the token. */
export class TokenFiles {
  readonly #store: ObjectStore
  readonly #folder: string

  constructor(store: ObjectStore, scope: Scope) {
    this.#store = store
    this.#folder = new Paths(scope).tokens
  }

  /** One request to the store, however many there are. */
  async names(): Promise<TokenNames> {
    const [made, revoked] = [new Set<string>(), new Set<string>()]
    for await (const { path } of this.#store.list(this.#folder)) {
      const [, id, isRevoked] = FILE.exec(path.slice(this.#folder.length)) ?? []
      if (id !== undefined) (isRevoked === undefined ? made : revoked).add(id)
    }
    return { made, revoked }
  }

  async add(record: TokenRecord): Promise<'written' | 'exists'> {
    return await this.#store.create(this.#record(record.token_id), checksummedJson('token', record))
  }

  async read(id: string): Promise<TokenRecord | undefined> {
    return await this.#read('token', this.#record(id), tokenRecord, id)
  }

  /** Returns the first revocation, which is the one that counts. */
  async revoke(record: Revocation): Promise<Revocation> {
    const bytes = checksummedJson('revocation', record)
    const outcome = await this.#store.create(this.#revocation(record.token_id), bytes)
    return (outcome === 'exists' ? await this.revocation(record.token_id) : undefined) ?? record
  }

  async revocation(id: string): Promise<Revocation | undefined> {
    return await this.#read('revocation', this.#revocation(id), revocation, id)
  }

  #record(id: string): string {
    return `${this.#folder}${id}.json`
  }

  #revocation(id: string): string {
    return `${this.#folder}${id}.revoked.json`
  }

  async #read<T>(name: string, path: string, schema: z.ZodType<T>, id: string): Promise<T | undefined> {
    const bytes = await this.#store.get(path)
    if (bytes === undefined) return undefined
    try {
      const parsed = schema.safeParse(readChecksummed(name, bytes, path))
      if (parsed.success) return parsed.data
    } catch (error) {
      if (!isServoError(error, 'corrupt')) throw error
    }
    throw new ServoError('corrupt', 'bad_token_file', `${path} is damaged, so the token does not count`, {
      hint: `Revoke it (servo tokens revoke ${id}), create another, and delete the file.`,
      facts: { path },
    })
  }
}
