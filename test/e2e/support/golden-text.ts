import fs from 'node:fs'
import { expect } from 'vitest'

/** Compares text with a file that people read. UPDATE_GOLDEN=1 writes it. */
export function expectFile(file: string, text: string): void {
  if (process.env['UPDATE_GOLDEN'] === '1') fs.writeFileSync(file, text)
  expect(text, `${file} differs: read what changed, then run with UPDATE_GOLDEN=1`).toBe(fs.readFileSync(file, 'utf8'))
}
