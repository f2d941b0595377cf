import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'

/** Where benchmarks write. Must be a real disk: point SERVO_BENCH_DIR at one if the system's temporary folder is memory. */
export function scratchRoot(): string {
  const root = process.env['SERVO_BENCH_DIR'] ?? path.join(os.tmpdir(), 'servo-bench')
  mkdirSync(root, { recursive: true })
  return root
}

const folders: string[] = []

process.on('exit', () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

/** A fresh folder that is gone when the process is. */
export function scratchFolder(name: string): string {
  const folder = mkdtempSync(path.join(scratchRoot(), `${name}-`))
  folders.push(folder)
  return folder
}
