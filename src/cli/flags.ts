import type { RunState } from '../domain/runs/runs.table.ts'
import { ServoError } from '../lib/error.ts'
import { nearest } from '../lib/nearest.ts'

/** The flags of every command that opens a workspace. */
export interface WorkspaceFlags {
  project?: string
  tenant?: string
  workspace?: string
  json?: boolean
}

/** A flag whose value, or whose absence, is wrong. */
export const badFlag = (message: string, hint?: string): ServoError =>
  new ServoError('invalid', 'bad_flag', message, hint === undefined ? {} : { hint })

/** The value of a flag as a whole number within these bounds. */
export function wholeNumber(flag: string, text: string, { min, max }: { min: number; max: number }): number {
  const number = Number(text)
  if (/^[+-]?\d+$/.test(text) && number >= min && number <= max) return number
  throw badFlag(`invalid value '${text}' for ${flag}`, `Use a whole number from ${min} to ${max}.`)
}

/** How many entries a list has; as many as a page of the server can have. */
export const limitFlag = (text: string | undefined, usual = 50): number =>
  text === undefined ? usual : wholeNumber('--limit', text, { min: 1, max: 1_000 })

/** The port of a server; undefined for the usual one. */
export const portFlag = (text: string | undefined): number | undefined =>
  text === undefined ? undefined : wholeNumber('--port', text, { min: 0, max: 65_535 })

/** Far beyond what a machine can run at a time: a slip of the finger must not start a million processes. */
const MAX_CONCURRENCY = 1_000

export const concurrencyFlag = (text: string | undefined): { concurrency?: number } =>
  text === undefined ? {} : { concurrency: wholeNumber('--concurrency', text, { min: 1, max: MAX_CONCURRENCY }) }

export function labelsFlag(labels: readonly string[], flag = '--label'): Record<string, string> {
  return Object.fromEntries(
    labels.map((label) => {
      const at = label.indexOf('=')
      if (at > 0) return [label.slice(0, at), label.slice(at + 1)]
      throw badFlag(`invalid value '${label}' for ${flag}`, `Use a name and a value: ${flag} team=sales`)
    }),
  )
}

const MOMENT = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)?)?$/

/** A time as users write it, in UTC. A time without a zone is local to this machine; a date begins in UTC. */
export function momentFlag(flag: string, text: string): string {
  const moment = new Date(text)
  if (MOMENT.test(text) && !Number.isNaN(moment.getTime())) return moment.toISOString()
  throw badFlag(
    `invalid value '${text}' for ${flag}`,
    'Use a time such as 2025-01-15T10:00:00Z. Without the Z it is in the time zone of this machine.',
  )
}

/** The span of time that a list is limited to. */
export const spanFlags = ({ since, until }: { since?: string; until?: string }) => ({
  since: since === undefined ? undefined : momentFlag('--since', since),
  until: until === undefined ? undefined : momentFlag('--until', until),
})

export const RUN_STATES = ['PENDING', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED'] as const satisfies readonly RunState[]

/** The value of a flag that can have these, whatever its case. */
export function choiceOf<const V extends readonly string[]>(flag: string, text: string, values: V): V[number] {
  const found = values.find((value) => value.toLowerCase() === text.toLowerCase())
  if (found !== undefined) return found
  const words = values.map((value) => value.toLowerCase())
  const near = nearest(text, words)
  throw badFlag(
    `invalid value '${text}' for ${flag}`,
    `${near === undefined ? '' : `Did you mean ${near}? `}Use one of: ${words.join(', ')}`,
  )
}

/** `mart/revenue[2025-09-03]` is how partitions are shown, so it is understood too. */
export function splitPartition(name: string, partition: string | undefined): { name: string; partition: string | undefined } {
  const [, asset, key] = partition === undefined ? (/^([^[\]]+)\[(.+)\]$/.exec(name) ?? []) : []
  return asset === undefined ? { name, partition } : { name: asset, partition: key }
}
