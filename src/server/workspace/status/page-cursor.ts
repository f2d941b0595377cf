import { z } from 'zod'
import { badCursor } from '../page.ts'

/** The end of a page: the last asset and partition on it. */
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
