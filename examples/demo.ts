/**
 * Shows Servo at work: runs every asset of the shop. On a terminal everything stays up as `servo dev`; without one it ends
 * when the run has.
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const command = process.stdout.isTTY ? ['dev', '--run', '*'] : ['run', '*']
const { status, signal } = spawnSync(
  process.execPath,
  [join(root, 'src/cli/bin.ts'), ...command, '--project', join(root, 'examples/shop')],
  { stdio: 'inherit' },
)
process.exitCode = status ?? (signal === null ? 1 : 130)
