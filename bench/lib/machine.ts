import { execFileSync } from 'node:child_process'
import { statfsSync } from 'node:fs'
import os from 'node:os'
import { scratchRoot } from './scratch.ts'

/** What a figure means nothing without. */
export interface Machine {
  readonly cpu: string
  readonly cores: number
  readonly memory_gb: number
  readonly node: string
  readonly system: string
  readonly filesystem: string
  readonly date: string
  readonly commit: string
  /** Load of the last minute when the benchmark began: above zero, somebody else was measuring too. */
  readonly load: number
}

export function machine(): Machine {
  return {
    cpu: os.cpus()[0]?.model.trim() ?? 'unknown',
    cores: os.cpus().length,
    memory_gb: Math.round(os.totalmem() / 2 ** 30),
    node: process.version,
    system: `${os.type()} ${os.release().split('-')[0]}`,
    filesystem: filesystem(),
    date: new Date().toISOString(),
    commit: commit(),
    load: Number((os.loadavg()[0] ?? 0).toFixed(2)),
  }
}

const FILESYSTEMS: Record<number, string> = {
  61267: 'ext4',
  16914836: 'tmpfs',
  1481003842: 'xfs',
  2435016766: 'btrfs',
  2035054128: 'overlayfs',
}

/** A folder in memory syncs in no time: such figures are none. */
function filesystem(): string {
  const { type } = statfsSync(scratchRoot())
  return FILESYSTEMS[type] ?? `0x${type.toString(16)}`
}

function commit(): string {
  const git = (...args: string[]): string =>
    execFileSync('git', args, { cwd: import.meta.dirname, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  try {
    return git('rev-parse', '--short', 'HEAD') + (git('status', '--porcelain', '--', '../../src') === '' ? '' : '+changes')
  } catch {
    return 'unknown'
  }
}
