import { existsSync } from 'node:fs'
import type { Command } from 'commander'
import { isServoError, ServoError } from '../../lib/error.ts'

/** The commands that take a selection of assets, or an asset. */
const SELECTING: ReadonlySet<string> = new Set([
  ...['run', 'show', 'assets list', 'assets graph', 'partitions status', 'partitions list', 'partitions stale'],
  ...['backfills preview', 'backfills create'],
])

/** A shell replaces an unquoted `*` by the names of files, which are no assets: whoever wrote one never saw these names. */
export function unlessExpanded(command: Command, error: unknown): unknown {
  const name = command.parent?.parent ? `${command.parent.name()} ${command.name()}` : command.name()
  const isRefused = isServoError(error) && (error.kind === 'invalid' || error.kind === 'not_found')
  const words = command.args
  if (!isRefused || !SELECTING.has(name) || words.length === 0 || !words.every((word) => existsSync(word))) return error
  const instead = name === 'show' ? 'Name one asset: servo assets list shows them.' : `Quote it: servo ${name} '*'`
  return new ServoError(error.kind, error.code, error.message, {
    hint: `These are names of files: the shell put them in place of *. ${instead}`,
    cause: error,
  })
}
