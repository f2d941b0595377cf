import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { MARKER } from './marked.ts'

/** What the names of a server's temporary folders begin with, by its marker: the next server of its project finds those that were left. */
export const scratchPrefix = (marker: string): string => `servo-${marker.replaceAll(':', '-')}`

/** A temporary folder for an attempt. Whoever makes it removes it; if its process is killed, the next start of the server does. */
export async function makeScratchFolder(purpose: string): Promise<string> {
  const marker = process.env[MARKER]
  return await mkdtemp(path.join(tmpdir(), `${marker === undefined ? 'servo-' : scratchPrefix(marker)}${purpose}-`))
}
