import type { AcceptedKeys, KeyPage } from '../../api/asset-contract.ts'
import { isServoError } from '../../lib/error.ts'
import { ask, tell } from '../ask-and-tell.ts'
import { colours, print, printable, printJson } from '../output.ts'
import { currentUser, type ProjectFlags } from '../project.ts'

export interface KeyFlags extends ProjectFlags {
  /** Names the request. */
  key?: string
}

/** Adds keys to a dynamic set, or removes them. */
export async function changeSetKeys(
  change: 'add' | 'remove',
  setName: string,
  keys: readonly string[],
  flags: KeyFlags,
): Promise<void> {
  const body = { [change]: keys, ...(flags.key !== undefined && { request_id: flags.key }) }
  const told = (ofCode: boolean): Promise<AcceptedKeys> =>
    tell(flags, ({ assets }) => assets.changeKeys(setName, body, currentUser()), { ofCode })
  const accepted = await told(false).catch((error: unknown) => {
    // The set may be declared in code that never ran.
    if (!isServoError(error, 'not_found')) throw error
    return told(true)
  })
  if (flags.json) printJson(accepted)
  else print(printable(said(change, accepted, flags)))
}

function said(
  change: 'add' | 'remove',
  { set_name, added, removed, unchanged, created }: AcceptedKeys,
  flags: KeyFlags,
): string {
  const word = change === 'add' ? 'added to' : 'removed from'
  const already = change === 'add' ? `${keysText(unchanged)} already in it` : `${keysText(unchanged)} not in it`
  if (created) return `${keysText(added + removed)} ${word} ${set_name}${unchanged > 0 ? `; ${already}` : ''}`
  if (flags.key === undefined) return `nothing changed in ${set_name}: ${already}`
  return `nothing changed in ${set_name}: ${already}, or request ${flags.key} was made before`
}

const keysText = (count: number): string => (count === 1 ? '1 key' : `${count} keys`)

const PAGE = 1_000

/** Prints one line per key; --json also has the user and the time. */
export async function listKeys(setName: string, flags: ProjectFlags): Promise<void> {
  const found: KeyPage['keys'][number][] = []
  await ask(flags, async ({ assets }) => {
    let cursor: string | undefined
    do {
      const page = await assets.keys(setName, { limit: PAGE, cursor })
      found.push(...page.keys)
      cursor = page.next_cursor ?? undefined
    } while (cursor !== undefined)
  })
  if (flags.json) printJson(found)
  else if (found.length > 0) print(found.map(({ partition_key }) => printable(partition_key)).join('\n'))
  else print(colours.dim(`${printable(setName)} has no keys; add one with: servo partitions add ${printable(setName)} <key>`))
}
