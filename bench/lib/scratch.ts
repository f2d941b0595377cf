import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
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
  if (folders.length === 0) sweep()
  const folder = mkdtempSync(path.join(scratchRoot(), `scratch-${process.pid}-${name}-`))
  folders.push(folder)
  return folder
}

/** What killed processes left. */
function sweep(): void {
  for (const name of readdirSync(scratchRoot())) {
    const pid = /^scratch-(\d+)-/.exec(name)?.[1]
    if (pid !== undefined && !isAlive(Number(pid))) rmSync(path.join(scratchRoot(), name), { recursive: true, force: true })
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
