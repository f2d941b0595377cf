import { isInteger, isText, objectOf, textLike } from '../../lib/shape.ts'
import type { FileRef } from '../files/file-ref.ts'
import { numberOf } from '../paths.ts'

/** A reference to a file as canonical JSON has it: an object without objects in it. */
const REFERENCE = /\{[^{}]*"path":"tenant=[^{}]*\}/g

const isReference = objectOf({ path: isText, bytes: isInteger, rows: isInteger, sha256: textLike(/^[0-9a-f]{64}$/) })

/** References to files in a damaged manifest or page of a list. One that was hit itself does not parse, or says what is not so. */
export function salvage(bytes: Uint8Array): FileRef[] {
  const found: FileRef[] = []
  for (const [text] of Buffer.from(bytes).toString('latin1').matchAll(REFERENCE)) {
    try {
      const reference: unknown = JSON.parse(text)
      if (isReference(reference) && !Number.isNaN(numberOf(reference.path))) found.push(reference)
    } catch {
      // What it was in is reported.
    }
  }
  return found
}
