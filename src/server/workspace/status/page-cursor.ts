import { z } from 'zod'
import { badCursor } from '../page.ts'

/** Where a page ended: an asset, and the key of the partition that came last. */
export interface PageCursor {
  readonly asset: string
  readonly partition: string
}

const written = z.tuple([z.string(), z.string()])

export const writeCursor = ({ asset, partition }: PageCursor): string =>
  Buffer.from(JSON.stringify([asset, partition])).toString('base64url')

export function readCursor(text: string): PageCursor {
  try {
    const [asset, partition] = written.parse(JSON.parse(Buffer.from(text, 'base64url').toString()))
    return { asset, partition }
  } catch {
    throw badCursor()
  }
}
