import type { AcceptedFacts, PartitionExtent } from '../../api/asset-contract.ts'
import { ask, tell } from '../ask-and-tell.ts'
import { askToConfirm, refuseUnattended } from '../confirm.ts'
import { labelsFlag, momentFlag } from '../flags.ts'
import { print, printable, printJson } from '../output.ts'
import { currentUser, type ProjectFlags } from '../project.ts'

interface FactFlags extends ProjectFlags {
  partition?: string[]
  /** Names the request. */
  key?: string
}

export interface ReportFlags extends FactFlags {
  at?: string
  codeVersion?: string
  dataVersion?: string
  materialization?: string
  metadata?: string[]
}

/** Reports that partitions were made outside Servo. */
export async function reportPartitions(assetKey: string, flags: ReportFlags): Promise<void> {
  const { partition, at, codeVersion, dataVersion, materialization, metadata, key } = flags
  const body = {
    ...(partition !== undefined && { partitions: partition }),
    ...(at !== undefined && { materialized_at: momentFlag('--at', at) }),
    ...(codeVersion !== undefined && { code_version: codeVersion }),
    ...(dataVersion !== undefined && { data_version: dataVersion }),
    ...(materialization !== undefined && { materialization_id: materialization }),
    ...(metadata !== undefined && { metadata: labelsFlag(metadata, '--metadata') }),
    ...(key !== undefined && { report_id: key }),
  }
  const accepted = await tell(flags, ({ assets }) => assets.report(assetKey, body, currentUser()))
  if (flags.json) printJson(accepted)
  else print(describeAccepted(accepted, 'recorded as materialized'))
}

export interface WipeFlags extends FactFlags {
  reason?: string
  yes?: boolean
}

/** Wipes partitions: they count as never made from now on. The user has to confirm. */
export async function wipePartitions(assetKey: string, flags: WipeFlags): Promise<void> {
  const terminal = { input: process.stdin, output: process.stderr }
  if (!flags.yes) refuseUnattended(terminal)
  const asked = flags.partition === undefined ? {} : { partitions: flags.partition }
  if (!flags.yes) {
    const dryRun = { ...asked, dry_run: true }
    const { partitions } = await ask(flags, ({ assets }) => assets.wipe(assetKey, dryRun, currentUser()))
    const question = `${printable(`${partitionsOf(assetKey, partitions)} will count as never materialized`)}. Continue?`
    if (!(await askToConfirm(question, terminal))) {
      print('nothing wiped')
      return
    }
  }
  const body = {
    ...asked,
    ...(flags.reason !== undefined && { reason: flags.reason }),
    ...(flags.key !== undefined && { request_id: flags.key }),
  }
  const accepted = await tell(flags, ({ assets }) => assets.wipe(assetKey, body, currentUser()))
  if (flags.json) printJson(accepted)
  else print(describeAccepted(accepted, 'wiped'))
}

const describeAccepted = ({ asset_key, partitions, created, request_id }: AcceptedFacts, done: string): string =>
  printable(
    created ? `${partitionsOf(asset_key, partitions)}: ${done}` : `nothing changed: request ${request_id} was made before`,
  )

function partitionsOf(assetKey: string, { count, first, last }: PartitionExtent): string {
  if (!first) return assetKey
  return count === 1 ? `${assetKey}[${first}]` : `${count} partitions of ${assetKey} (${first} to ${last})`
}
