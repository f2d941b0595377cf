import { shellWord } from '../lib/process/shell-word.ts'

interface ToMaterialize {
  readonly asset_key: string
  readonly inputs: object
  readonly deps: readonly unknown[]
  readonly partitions?: unknown
}

/** The command that materializes an asset that never was. It works as it is: it makes missing inputs too, and names no partition of them. */
export function materializeCommand(asset: ToMaterialize, partition?: string): string {
  const { asset_key, inputs, deps, partitions } = asset
  const isFirst = Object.keys(inputs).length + deps.length === 0
  const flags = [
    ...(partition === undefined ? [] : [`--partition ${shellWord(partition)}`]),
    // Without it a run must name the partitions of everything that has some, and would make again what is there.
    ...(isFirst && (!partitions || partition !== undefined) ? [] : ['--missing']),
  ]
  return ['servo run', shellWord(isFirst ? asset_key : `+key:"${asset_key}"`), ...flags].join(' ')
}
