import type { Collected, Purged, RemovedBytes } from '../../api/retention-contract.ts'
import type { WorkspaceApi } from '../../api/workspace-contract.ts'
import { ask, tell } from '../ask-and-tell.ts'
import { alignRows } from '../columns.ts'
import { askToConfirm, refuseUnattended } from '../confirm.ts'
import { print, printable, printJson } from '../output.ts'
import { currentUser, type ProjectFlags } from '../project.ts'

export interface GcFlags extends ProjectFlags {
  dryRun?: boolean
  yes?: boolean
}

/** Removes the stored values that the rules of their assets do not keep, or says which these are. The user has to confirm. */
export async function gcCommand(flags: GcFlags): Promise<void> {
  const terminal = { input: process.stdin, output: process.stderr }
  if (!flags.dryRun && !flags.yes) {
    refuseUnattended(terminal)
    const { values } = await ask(flags, (api) => collect(api, true))
    if (values.length > 0 && !(await askToConfirm(`${sizeOf(values)} will be removed for good. Continue?`, terminal))) {
      print('nothing removed')
      return
    }
  }
  const found = flags.dryRun ? await ask(flags, (api) => collect(api, true)) : await tell(flags, (api) => collect(api, false))
  const { values, retained_assets } = found
  if (flags.json) {
    printJson({ dry_run: flags.dryRun ?? false, ...totals(values), assets: byAsset(values), removed: values })
    return
  }
  for (const line of alignRows(
    byAsset(values).map((asset) => [{ text: printable(asset.asset_key) }, { text: sizeText(asset) }]),
  ))
    print(line)
  const everything = 'no asset declares `keep`, so everything is kept'
  const done = flags.dryRun ? 'would be removed' : 'removed'
  print(retained_assets === 0 ? everything : values.length === 0 ? 'nothing to remove' : `${sizeOf(values)} ${done}`)
}

async function collect({ retention }: WorkspaceApi, dry_run: boolean): Promise<Omit<Collected, 'next_cursor'>> {
  const values: RemovedBytes[] = []
  for (let cursor: string | undefined; ; ) {
    const part = await retention.collect({ dry_run, ...(cursor !== undefined && { cursor }) }, currentUser())
    values.push(...part.values)
    if (part.next_cursor === null) return { values, retained_assets: part.retained_assets }
    cursor = part.next_cursor
  }
}

export interface PurgeFlags extends ProjectFlags {
  partition?: string[]
  reason?: string
  yes?: boolean
}

/** Removes all values of partitions that do not count. The user has to confirm. */
export async function purgePartitions(assetKey: string, flags: PurgeFlags): Promise<void> {
  const terminal = { input: process.stdin, output: process.stderr }
  const { partition: partitions, reason } = flags
  const body = { ...(partitions !== undefined && { partitions }), ...(reason !== undefined && { reason }) }
  if (!flags.yes) {
    refuseUnattended(terminal)
    const { values } = await ask(flags, (api) => purge(api, assetKey, { ...body, dry_run: true }))
    const what = printable(`${sizeOf(values)} of ${assetKey} will be removed for good`)
    if (values.length > 0 && !(await askToConfirm(`${what}. Continue?`, terminal))) {
      print('nothing removed')
      return
    }
  }
  const { values, in_use } = await tell(flags, (api) => purge(api, assetKey, body))
  if (flags.json) {
    printJson({ asset_key: assetKey, ...totals(values), in_use, removed: values })
    return
  }
  const isNothing = values.length === 0 && in_use === 0
  print(
    printable(
      isNothing
        ? `${assetKey}: nothing to remove; current values stay, unless they are wiped first`
        : `${assetKey}: ${sizeOf(values)} removed`,
    ),
  )
  if (in_use > 0) print(`${count(in_use, 'value')} may still be read by runs that go on: purge again when they have ended`)
}

async function purge(
  { retention }: WorkspaceApi,
  assetKey: string,
  body: Parameters<WorkspaceApi['retention']['purge']>[1],
): Promise<Pick<Purged, 'values' | 'in_use'>> {
  const values: RemovedBytes[] = []
  let in_use = 0
  for (let cursor: string | undefined; ; ) {
    const part = await retention.purge(assetKey, { ...body, ...(cursor !== undefined && { cursor }) }, currentUser())
    values.push(...part.values)
    in_use += part.in_use
    if (part.next_cursor === null) return { values, in_use }
    cursor = part.next_cursor
  }
}

interface Totals {
  readonly values: number
  readonly bytes: number
}

const totals = (values: readonly RemovedBytes[]): Totals => ({
  values: values.length,
  bytes: values.reduce((sum, { bytes }) => sum + bytes, 0),
})

const byAsset = (values: readonly RemovedBytes[]): (Totals & { readonly asset_key: string })[] =>
  [...Map.groupBy(values, ({ asset_key }) => asset_key)].map(([asset_key, own]) => ({ asset_key, ...totals(own) }))

const sizeOf = (values: readonly RemovedBytes[]): string => sizeText(totals(values))

const sizeText = ({ values, bytes }: Totals): string => `${count(values, 'value')} (${bytesText(bytes)})`

const count = (number: number, word: string): string => `${number} ${word}${number === 1 ? '' : 's'}`

/** In the units in which disks are sold. */
function bytesText(bytes: number): string {
  if (bytes < 1_000) return count(bytes, 'byte')
  const units = ['kB', 'MB', 'GB', 'TB']
  const power = Math.min(units.length, Math.floor(Math.log10(bytes) / 3))
  return `${(bytes / 1_000 ** power).toFixed(1)} ${units[power - 1]}`
}
