import { deflateRawSync, inflateRawSync } from 'node:zlib'

/** Bytes as text that takes as little room as they allow. */
export const squeeze = (bytes: Uint8Array): string => deflateRawSync(bytes, { level: 9 }).toString('base64')

/** What `squeeze` has made. Throws if a text is something else, or if more than `maxBytes` are in it. */
export const unsqueeze = (text: string, maxBytes: number): Uint8Array =>
  inflateRawSync(Buffer.from(text, 'base64'), { maxOutputLength: maxBytes })
