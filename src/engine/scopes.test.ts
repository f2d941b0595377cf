import { expect, test } from 'vitest'
import { memoryStore } from '../adapters/memory/object-store.ts'
import { countingStore } from '../testing/counting-store.ts'
import { Paths, segmentUlid } from './paths.ts'
import { listScopes } from './scopes.ts'

const body = new Uint8Array(1)

test('every workspace of a store is found, one request each, however much lies in it', async () => {
  const store = countingStore(memoryStore())
  const scopes = ['acme', 'acme-2', 'b_c', 'z'].flatMap((tenant_id) =>
    ['analytics', 'prod', 'z'].map((workspace_id) => ({ tenant_id, workspace_id })),
  )
  for (const scope of scopes) {
    const paths = new Paths(scope)
    for (let i = 1; i < 20; i++) await store.put(paths.manifest(i), body)
    await store.put(paths.segment('01JHMX0000000000000000000A'), body)
    await store.put(paths.attachScript, body)
  }
  store.reset()
  const found = await listScopes(store)
  expect(found).toHaveLength(scopes.length)
  expect(found).toEqual(expect.arrayContaining(scopes))
  expect(store.count()).toBe(scopes.length + 1)
})

test('what is not a workspace is passed over: other files, and folders whose names are no names of ours', async () => {
  const store = memoryStore()
  const strange = [
    'README.md',
    'tenant=acme/notes.txt',
    'tenant=ACME/workspace=prod/a',
    'tenant=acme/workspace=-x/a',
    'workspace=prod/a',
    'zzz/a',
  ]
  for (const path of strange) await store.put(path, body)
  await store.put(new Paths({ tenant_id: 'acme', workspace_id: 'prod' }).manifest(1), body)
  expect(await listScopes(store)).toEqual([{ tenant_id: 'acme', workspace_id: 'prod' }])
  expect(await listScopes(memoryStore())).toEqual([])
})

test('[L1] only a segment in the folder of its day has the path of a segment', () => {
  const paths = new Paths({ tenant_id: 'acme', workspace_id: 'prod' })
  const ulid = '01JHMX0000000000000000000A'
  expect(segmentUlid(paths.segment(ulid))).toBe(ulid)
  const others = [
    '',
    '/',
    ulid,
    `${ulid}.json`,
    `${paths.ledger}1999-01-01/${ulid}.json`,
    paths.segment(ulid).toLowerCase(),
    `${paths.segment(ulid)}.tmp`,
  ]
  for (const path of others) expect(segmentUlid(path), path).toBeUndefined()
  // A ULID can carry a year of five digits, which is no day of ours.
  expect(segmentUlid(`${paths.ledger}2025-01-15/7ZZZZZZZZZZZZZZZZZZZZZZZZZ.json`)).toBeUndefined()
})
