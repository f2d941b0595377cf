import { describe, expect, test } from 'vitest'
import type { Secrets, WorkspaceSecrets } from '../../ports/secrets.ts'

/** A place for secrets that nobody has used yet. */
export interface OpenedSecrets {
  /** The secrets as another process sees them. */
  open(): Secrets
}

const some = (name: string): WorkspaceSecrets => ({
  run_ids: { id: `${name}-1`, value: `${name} run ids, long enough` },
  api_token: `${name} token, long enough`,
  task_tokens: { id: `${name}-1`, value: `${name} task tokens, long enough` },
})

/** What every adapter of `Secrets` promises. */
export function secretsConformance(title: string, place: () => Promise<OpenedSecrets>): void {
  describe(title, () => {
    test('nothing is kept before somebody keeps something, and looking keeps nothing', async () => {
      const { open } = await place()
      expect(await open().read()).toBeUndefined()
      expect(await open().read()).toBeUndefined()
    })

    test('what was kept is read by whoever looks later', async () => {
      const { open } = await place()
      expect(await open().create(some('ada'))).toEqual(some('ada'))
      expect(await open().read()).toEqual(some('ada'))
    })

    test('what is kept is never replaced: whoever comes later is given it', async () => {
      const { open } = await place()
      await open().create(some('ada'))
      expect(await open().create(some('bob'))).toEqual(some('ada'))
      expect(await open().read()).toEqual(some('ada'))
    })

    test('of several who create at once one is believed by all', async () => {
      const { open } = await place()
      const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => open().create(some(`n${i}`))))
      const kept = await open().read()
      for (const answer of answers) expect(answer).toEqual(kept)
    })
  })
}
