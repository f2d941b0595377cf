import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Secrets, WorkspaceSecrets } from '../../ports/secrets.ts'

/** A place without secrets; every test asks for one of its own. */
export interface OpenedSecrets {
  /** The secrets as one more process sees them. */
  readonly join: () => Secrets
  readonly close?: () => Promise<void>
}

export type OpenSecrets = () => Promise<OpenedSecrets>

const some = (text: string): WorkspaceSecrets => ({
  run_ids: { id: 'local-1', value: `${text} makes run ids`.padEnd(32, '.') },
  api_token: `${text} speaks to the server`.padEnd(32, '.'),
  task_tokens: { id: 'local-1', value: `${text} signs tokens`.padEnd(32, '.') },
})

/** The law of `ports/secrets.ts`, as tests. Call it from the test file of an adapter: it conforms when they pass. */
export function secretsConformance(name: string, openSecrets: OpenSecrets): void {
  describe(name, () => {
    let opened: OpenedSecrets

    beforeEach(async () => {
      opened = await openSecrets()
    })

    afterEach(async () => {
      await opened.close?.()
    })

    it('there are no secrets before they are made, and reading makes none', async () => {
      const secrets = opened.join()
      expect(await secrets.read()).toBeUndefined()
      expect(await secrets.read()).toBeUndefined()
    })

    it('every process reads the secrets that were made', async () => {
      expect(await opened.join().create(some('one'))).toBe('written')
      expect(await opened.join().read()).toEqual(some('one'))
    })

    it('secrets that are there are never replaced', async () => {
      await opened.join().create(some('one'))
      expect(await opened.join().create(some('other'))).toBe('exists')
      expect(await opened.join().read()).toEqual(some('one'))
    })

    it('of many processes that make secrets at once one succeeds, and all read the same', async () => {
      const makers = Array.from({ length: 10 }, (_, i) => some(`maker ${i}`))
      const outcomes = await Promise.all(makers.map((each) => opened.join().create(each)))
      expect(outcomes.filter((outcome) => outcome === 'written')).toHaveLength(1)
      expect(await opened.join().read()).toEqual(makers[outcomes.indexOf('written')])
    })
  })
}
