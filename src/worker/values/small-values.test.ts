import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { fsStore } from '../../adapters/fs/object-store.ts'
import { memoryStore } from '../../adapters/memory/object-store.ts'
import type { InputRef } from '../../contract/dispatch.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import type { DataRow, Written } from '../../sdk/declare/values.ts'
import { attemptValues, type Making } from './attempt-values.ts'
import { givenInput } from './input-files.ts'

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'servo-small-values-'))
afterAll(() => fs.rmSync(folder, { recursive: true }))

const local = fsStore(path.join(folder, 'workspace'))
const fileOf = (name: string): string => path.join(local.dir, name)
const stores: [string, ObjectStore, ((name: string) => string) | undefined][] = [
  ['a folder', local, fileOf],
  ['any other store', memoryStore(), undefined],
]

let made = 0
const storageIn = (store: ObjectStore, files?: typeof fileOf) => ({
  store,
  projectDir: folder,
  ...(files && { fileOf: files }),
})
const valuesIn = (store: ObjectStore, files?: typeof fileOf, more: Partial<Making> = {}) =>
  attemptValues(storageIn(store, files), { assetKey: 'a', partitionKey: undefined, materializationId: `m${++made}`, ...more })

const stored = ({ path, value, bytes, sha256 }: Written) => {
  return { partition_key: '', materialization_id: 'm', path, value, bytes, sha256 }
}
const tableRef = (written: Written): InputRef => ({ asset_key: 'a', io: 'parquet', many: false, values: [stored(written)] })

async function* stream(rows: Iterable<DataRow>): AsyncGenerator<DataRow> {
  yield* rows
}

describe.each(stores)('in %s', (_, store, files) => {
  test('[D9] JSON up to the limit is returned with the report and not written; anything larger is a file, as without a limit', async () => {
    const values = valuesIn(store, files, { inlineBytes: 5 })
    const small = await values.writeJson('"ü1"')
    expect(small).toMatchObject({ value: '"ü1"', bytes: 5, dataVersion: small.sha256 })
    expect(small.path).toBeUndefined()
    expect(await values.readJson(stored(small))).toBe('ü1')
    const large = await values.writeJson('"ü12"')
    expect(large).toMatchObject({ path: expect.stringMatching(/\.json$/), bytes: 6 })
    expect(large.value).toBeUndefined()
    expect(await values.readJson(stored(large))).toBe('ü12')
    expect((await valuesIn(store, files).writeJson('1')).path).toMatch(/\.json$/)
    expect((await valuesIn(store, files, { inlineBytes: 5 }).writeJson('1', 'file')).path).toMatch(/\.json$/)
  })

  test('[D9] a value that quotes a secret is a file, however small: the ledger is for ever', async () => {
    const hasSecret = (text: string): boolean => text.includes('s3cret')
    const written = await valuesIn(store, files, { inlineBytes: 100, hasSecret }).writeJson('{"token":"s3cret"}')
    expect(written.path).toMatch(/\.json$/)
    expect(written.value).toBeUndefined()
    expect((await valuesIn(store, files, { inlineBytes: 100, hasSecret }).writeJson('{}')).value).toBe('{}')
  })

  test('[D9] a program gets a small value as a file, and its input says the value too', async () => {
    const written = await valuesIn(store, files, { inlineBytes: 100 }).writeJson('{"n":1}')
    const ref = { asset_key: 'a', io: 'json', many: false, values: [stored(written)] }
    const copies = path.join(folder, `input-${++made}`)
    const given = await givenInput(storageIn(store, files), { ref, hasDimensions: false, copies })
    expect(given).toMatchObject({ format: 'json', files: [{ partition: null, value: { n: 1 } }] })
    expect(fs.readFileSync(given.path ?? '', 'utf8')).toBe('{"n":1}')
  })

  const damaged = { kind: 'corrupt', code: 'value_damaged', hint: expect.stringContaining('materialize the asset again') }

  test('[D10] a value that was changed after it was written is not read, by code, by SQL or by a program, be it a file or not', async () => {
    const values = valuesIn(store, files, { inlineBytes: 100 })
    const spoil = async (written: Written, change: (bytes: Uint8Array) => Uint8Array): Promise<void> => {
      const name = written.path ?? ''
      const bytes = (await store.get(name)) ?? new Uint8Array()
      await store.delete(name)
      await store.create(name, change(bytes))
    }
    const flipped = (bytes: Uint8Array): Uint8Array => bytes.map((byte, i) => (i === bytes.length >> 1 ? byte ^ 1 : byte))
    const cut = (bytes: Uint8Array): Uint8Array => bytes.slice(0, -1)

    const inline = stored(await values.writeJson('{"amount":100}'))
    await expect(values.readJson({ ...inline, value: '{"amount":900}' })).rejects.toMatchObject(damaged)

    const json = await valuesIn(store, files).writeJson('{"amount":100}')
    const bytes = await valuesIn(store, files).writeBytes(new Uint8Array([1, 2, 3]))
    await spoil(json, () => new TextEncoder().encode('{"amount":900}'))
    await spoil(bytes, cut)
    await expect(values.readJson(stored(json))).rejects.toMatchObject(damaged)
    await expect(values.readBytes(stored(bytes))).rejects.toMatchObject(damaged)
    const ref = { asset_key: 'a', io: 'json', many: false, values: [stored(json)] }
    const copies = path.join(folder, `input-${++made}`)
    await expect(givenInput(storageIn(store, files), { ref, hasDimensions: false, copies })).rejects.toMatchObject(damaged)

    for (const change of [flipped, cut]) {
      const rows = await valuesIn(store, files).writeRows(stream([{ amount: 100 }]), undefined)
      await spoil(rows, change)
      const open = async () => await values.openTable(tableRef(rows), undefined)
      await expect((await open()).rows()).rejects.toMatchObject(damaged)
      await expect((await open()).sql`select * from this`).rejects.toMatchObject(damaged)
    }
  })

  test('[D10] a value of an earlier version, which recorded no checksum, is read as before', async () => {
    const written = await valuesIn(store, files).writeJson('{"n":1}')
    expect(await valuesIn(store, files).readJson({ partition_key: '', materialization_id: 'm', path: written.path })).toEqual({
      n: 1,
    })
    const rows = await valuesIn(store, files).writeRows(stream([{ n: 1 }]), undefined)
    const ref = tableRef({ path: rows.path })
    expect(await (await valuesIn(store, files).openTable(ref, undefined)).rows()).toEqual([{ n: 1 }])
  })
})
