import { ServoError } from '../../lib/error.ts'
import { sha256 } from '../../lib/hash.ts'
import { canonicalJson } from '../../lib/json.ts'

/**
 * JSON that carries its own checksum: `{"<name>":<canonical value>,"sha256":"<of the value's text>"}`. Readable with
 * any tool, and no byte of it can change unseen: the frame is fixed, the rest is hashed.
 */
export function checksummedJson(name: string, value: unknown): Uint8Array {
  return checksummedText(name, canonicalJson(value))
}

/** The same for a value whose canonical text is known already. */
export function checksummedText(name: string, body: string): Uint8Array {
  return Buffer.from(`{"${name}":${body},"sha256":"${sha256(body)}"}`)
}

/** The bytes of the checksum at the end, with the closing brace. */
export const CHECKSUM_BYTES = ',"sha256":"'.length + 64 + '"}'.length

/** The value of such JSON; refuses anything that is not exactly what was written. */
export function readChecksummed<T>(name: string, bytes: Uint8Array, path: string): T {
  const head = `{"${name}":`
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const body = text.subarray(head.length, -CHECKSUM_BYTES)
  const framed = text.length > head.length + CHECKSUM_BYTES && text.subarray(0, head.length).equals(Buffer.from(head))
  if (!framed || !text.subarray(-CHECKSUM_BYTES).equals(Buffer.from(`,"sha256":"${sha256(body)}"}`))) {
    throw damagedFile('checksum_mismatch', path, 'its contents do not match its checksum')
  }
  return parseJsonFile(body, path)
}

/**
 * The same for an object of several members, the first of which is a list: `{"<name>":[<items>],<others>,"sha256":"<of the object without
 * it>"}`. The texts of the items become bytes one by one: a text of all of them would be copied once more for each step.
 */
export function checksummedList(name: string, items: readonly string[], others: string): Uint8Array {
  const [head, tail] = [`{"${name}":[`, `],${others}}`]
  let size = Buffer.byteLength(head) + Buffer.byteLength(tail) + CHECKSUM_BYTES
  for (const item of items) size += Buffer.byteLength(item) + 1
  const bytes = Buffer.allocUnsafe(size)
  let end = bytes.write(head)
  for (const [i, item] of items.entries()) {
    if (i > 0) end += bytes.write(',', end)
    end += bytes.write(item, end)
  }
  end += bytes.write(tail, end)
  // The checksum goes where the object ended.
  end += bytes.write(`,"sha256":"${sha256(bytes.subarray(0, end))}"}`, end - 1) - 1
  return bytes.subarray(0, end)
}

/** The members of such an object. */
export function readChecksummedMembers<T>(bytes: Uint8Array, path: string): T {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const object = text.length > CHECKSUM_BYTES ? Buffer.concat([text.subarray(0, -CHECKSUM_BYTES), CLOSING]) : CLOSING
  if (!text.subarray(-CHECKSUM_BYTES).equals(Buffer.from(`,"sha256":"${sha256(object)}"}`))) {
    throw damagedFile('checksum_mismatch', path, 'its contents do not match its checksum')
  }
  return parseJsonFile(object, path)
}

const CLOSING = Buffer.from('}')

function parseJsonFile<T>(text: Buffer, path: string): T {
  try {
    return JSON.parse(text.toString('utf8')) as T
  } catch (error) {
    // A correct checksum does not prove that the text is JSON, and one bad file must not stop the reading of others.
    throw damagedFile('not_json', path, 'it is not JSON', error)
  }
}

function damagedFile(code: string, path: string, why: string, cause?: unknown): ServoError {
  return new ServoError('corrupt', code, `${path} is damaged: ${why}`, {
    hint: 'Restore the file from a backup; `servo verify` lists everything that is damaged.',
    facts: { path },
    cause,
  })
}
