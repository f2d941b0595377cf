import { toIso } from '../../lib/time.ts'
import type { FileRef } from '../files/file-ref.ts'
import { archivesOf, MANIFEST_FORMAT, type Manifest } from '../manifest/manifest.ts'
import { appendEntry } from '../manifest/page-list.ts'
import type { Paths } from '../paths.ts'
import type { Draft } from '../publish/draft.ts'

/** The manifest after this one, which names one more archive. */
export function withArchive(manifest: Manifest, paths: Paths, archive: FileRef, nowMs: number): Draft {
  const number = manifest.number + 1
  const { list, pages } = appendEntry(archivesOf(manifest), { ...archive, publish: number }, (at, level) =>
    paths.page('archives', at, manifest.epoch, level),
  )
  const amended = { ...manifest, format: MANIFEST_FORMAT, number, published_at: toIso(nowMs), archives: list } as const
  return { files: pages, manifest: amended }
}
