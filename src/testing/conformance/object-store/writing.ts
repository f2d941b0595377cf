import { describe, expect, it } from 'vitest'
import { sameBytes, type TheStore, text, times } from './samples.ts'

export function writingObjects(store: TheStore): void {
  describe('create', () => {
    it('writes an object that was not there', async () => {
      expect(await store().create('ledger/2025-01-15/a.json', text('first'))).toBe('written')
      expect(await store().get('ledger/2025-01-15/a.json')).toEqual(text('first'))
    })

    it('never changes an object that is there', async () => {
      await store().create('a', text('first'))
      expect(await store().create('a', text('a much longer second'))).toBe('exists')
      expect(await store().create('a', text('first'))).toBe('exists')
      expect(await store().get('a')).toEqual(text('first'))
    })

    it('never changes an object that was put', async () => {
      await store().put('a', text('put'))
      expect(await store().create('a', text('created'))).toBe('exists')
      expect(await store().get('a')).toEqual(text('put'))
    })

    it('has exactly one winner among fifty, and the object is the one of the winner', async () => {
      const answers = await Promise.all(times(50, (racer) => store().create('race/here', text(`racer ${racer}`))))
      const winners = answers.flatMap((answer, racer) => (answer === 'written' ? [racer] : []))
      expect(winners).toHaveLength(1)
      expect(await store().get('race/here')).toEqual(text(`racer ${winners[0]}`))
    })

    it('has one winner for each path when many writers race for many paths in folders that do not exist yet', async () => {
      const answers = await Promise.all(times(120, (racer) => store().create(`race/${racer % 12}/it`, text(`${racer}`))))
      for (let path = 0; path < 12; path += 1) {
        const winners = times(120, (racer) => racer).filter((racer) => racer % 12 === path && answers[racer] === 'written')
        expect(winners, `race/${path}/it`).toHaveLength(1)
        expect(await store().get(`race/${path}/it`)).toEqual(text(`${winners[0]}`))
      }
    })

    it('writes again after a delete', async () => {
      await store().create('a', text('first'))
      await store().delete('a')
      expect(await store().create('a', text('second'))).toBe('written')
      expect(await store().get('a')).toEqual(text('second'))
    })
  })

  describe('put', () => {
    it('creates and replaces', async () => {
      await store().put('manifests/newest.json', text('one, and quite long'))
      await store().put('manifests/newest.json', text('two'))
      expect(await store().get('manifests/newest.json')).toEqual(text('two'))
      expect(await store().size('manifests/newest.json')).toBe(3)
    })

    it('shows readers the old bytes or the new ones, never a mix, and never the old ones again', async () => {
      const version = (value: number) => new Uint8Array(1_000_000 + value * 1_000).fill(value)
      await store().put('large', version(0))
      let writing = true
      const writer = (async () => {
        for (let value = 1; value <= 20; value += 1) await store().put('large', version(value))
      })().finally(() => {
        writing = false
      })
      const readers = times(4, async (reader) => {
        let newest = 0
        while (writing) {
          const bytes = reader % 2 === 0 ? await store().get('large') : await store().getRange('large', 0, 5_000_000)
          const value = bytes?.[0] ?? Number.NaN
          expect(sameBytes(bytes, version(value)), `version ${value} is whole`).toBe(true)
          expect(value).toBeGreaterThanOrEqual(newest)
          newest = value
        }
      })
      await Promise.all([writer, ...readers])
      expect(sameBytes(await store().get('large'), version(20))).toBe(true)
    })

    it('leaves one whole object when many writers put at once', async () => {
      const bodies = times(8, (writer) => new Uint8Array(300_000 + writer).fill(writer))
      await Promise.all(bodies.map((body) => store().put('shared', body)))
      const bytes = await store().get('shared')
      expect(sameBytes(bytes, bodies[bytes?.[0] ?? 0]!)).toBe(true)
    })
  })

  describe('a buffer', () => {
    it('belongs to its caller again when the write has resolved', async () => {
      const [created, replaced] = [text('created'), text('put')]
      await store().create('created', created)
      await store().put('put', replaced)
      created.fill(0)
      replaced.fill(0)
      expect(await store().get('created')).toEqual(text('created'))
      expect(await store().get('put')).toEqual(text('put'))
    })

    it('may be a view into a larger one', async () => {
      await store().create('view', text('before abc after').subarray(7, 10))
      await store().create('buffer', Buffer.from('pooled'))
      expect(await store().get('view')).toEqual(text('abc'))
      expect(await store().get('buffer')).toEqual(text('pooled'))
    })

    it('that was read belongs to its reader', async () => {
      await store().create('a', text('abc'))
      for (const bytes of [await store().get('a'), await store().getRange('a', 0, 3)]) bytes?.fill(0)
      expect(await store().get('a')).toEqual(text('abc'))
    })
  })
}
