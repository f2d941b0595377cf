import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { beforeAll, expect, test } from 'vitest'
import { encodeManifest } from '../../../src/engine/manifest/stored-manifests.ts'
import { sha256Bytes } from '../../../src/lib/hash.ts'
import { reportFact } from '../../../src/testing/facts.ts'
import { packAll, packerOf, publishNext, severalDays } from '../pack/packed-days.ts'
import { paths, type Workspace } from '../workspace.ts'

let packed: Workspace
beforeAll(async () => {
  packed = (await severalDays(3)).workspace
  const compactor = await packed.compactor({ name: 'packs' })
  await packAll(packerOf(packed, compactor))
  await publishNext(packed, compactor, reportFact('after'))
})

/** What a newer version leaves, each with the right checksum. */
const written: [string, (workspace: Workspace) => Promise<void>][] = [
  [
    'the newest manifest',
    async (workspace) => {
      const manifest = (await workspace.manifests()).at(-1)!
      const newer = encodeManifest({ ...manifest, number: manifest.number + 1, format: 9 as 3 })
      await workspace.store.put(paths.manifest(manifest.number + 1), newer)
      await workspace.store.put(paths.manifestCopy, newer)
    },
  ],
  [
    'a manifest of which only the copy is left',
    async (workspace) => {
      const manifest = (await workspace.manifests()).at(-1)!
      await workspace.store.put(
        paths.manifestCopy,
        encodeManifest({ ...manifest, number: manifest.number + 1, format: 9 as 3 }),
      )
    },
  ],
  [
    'an archive',
    async (workspace) => {
      const [path] = await workspace.paths(paths.archives)
      await workspace.store.put(path!, ofNewerFormat((await workspace.store.get(path!))!))
    },
  ],
]

/** The same archive with an index of another format. */
function ofNewerFormat(archive: Uint8Array): Uint8Array {
  const bytes = Buffer.from(archive)
  const trailer = bytes.subarray(-48)
  const size = trailer.readUInt32LE(12)
  const index = JSON.parse(zstdDecompressSync(bytes.subarray(-48 - size, -48)).toString()) as object
  const stored = zstdCompressSync(JSON.stringify({ ...index, format: 9 }))
  const head = Buffer.from(bytes.subarray(-48 - size - 8, -48 - size))
  head.writeUInt32LE(stored.length, 4)
  const tail = Buffer.from(trailer)
  tail.writeUInt32LE(stored.length, 12)
  tail.set(sha256Bytes(stored), 16)
  return Buffer.concat([bytes.subarray(0, -48 - size - 8), head, stored, tail])
}

test.each(written)(
  '[S15] a state of which a newer version of Servo wrote %s is refused by verify and rebuild, which change nothing',
  async (_, write) => {
    const workspace = await packed.copy()
    await write(workspace)
    const before = await workspace.digests()
    const refused = { code: 'unknown_format', kind: 'conflict', hint: expect.stringContaining('Upgrade Servo') }
    await expect(workspace.verify()).rejects.toMatchObject(refused)
    await expect(workspace.verify({ quick: true })).rejects.toMatchObject(refused)
    await expect(workspace.rebuild()).rejects.toMatchObject(refused)
    expect(await workspace.digests()).toEqual(before)
  },
)
