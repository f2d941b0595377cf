import { readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Command } from 'commander'
import { isServoError, ServoError } from '../../lib/error.ts'

/** A shell replaces an unquoted `*` by the names of files, which are no assets and no partitions: whoever wrote one never saw these names. */
export function unlessExpanded(command: Command, args: readonly string[], error: unknown): unknown {
  const name = command.parent?.parent ? `${command.parent.name()} ${command.name()}` : command.name()
  // Cron expressions have several, and messages of their own.
  if (!isServoError(error) || !['invalid', 'not_found'].includes(error.kind) || name.startsWith('cron ')) return error
  const found = expansionIn(args)
  if (found === undefined) return error
  return new ServoError(error.kind, error.code, error.message, {
    hint: `The shell put names of files in place of ${found.pattern}. ${insteadOf(name, args, found)}`,
    cause: error,
  })
}

interface Expansion {
  readonly pattern: string
  readonly at: number
  readonly count: number
}

/** A shell puts all names of a folder in place of its `*`, next to each other. An asset may well be called as one of them. */
function expansionIn(args: readonly string[]): Expansion | undefined {
  for (const [at, word] of args.entries()) {
    const dir = dirname(word)
    const prefix = word.includes('/') ? `${dir}/` : ''
    const names = new Set(visibleNames(dir).map((name) => `${prefix}${name}`))
    const window = args.slice(at, at + names.size)
    const isAll = window.length === names.size && window.every((each) => names.has(each)) && new Set(window).size === names.size
    // A single name is as likely to be meant.
    if (isAll && names.size > 1) return { pattern: `${prefix}*`, at, count: names.size }
  }
  return undefined
}

function visibleNames(dir: string): string[] {
  try {
    return readdirSync(dir).filter((name) => !name.startsWith('.'))
  } catch {
    return []
  }
}

/** The command as it was meant. */
function insteadOf(name: string, args: readonly string[], { pattern, at, count }: Expansion): string {
  if (name === 'query') return 'Quote the whole query: servo query "select …"'
  const isValue = args[at - 1]?.startsWith('-')
  if (['show', 'assets show', 'why asset'].includes(name) && !isValue) return 'Name one asset: servo assets list shows them.'
  const typed = (word: string): string => (/[^\w./:=@,+-]/.test(word) ? `'${word}'` : word)
  const words = [...args.slice(0, at).map(typed), `'${pattern}'`, ...args.slice(at + count).map(typed)]
  return `Quote it: servo ${words.join(' ')}`
}
