import type { RunState } from '../domain/runs/runs.table.ts'
import { ServoError } from '../lib/error.ts'

/** The flags of every command that opens a workspace. */
export interface WorkspaceFlags {
  tenant?: string
  workspace?: string
  json?: boolean
}

/** The value of a flag as a whole number within these bounds. */
export function wholeNumber(flag: string, text: string, { min, max }: { min: number; max: number }): number {
  const number = Number(text)
  if (/^[+-]?\d+$/.test(text) && number >= min && number <= max) return number
  throw new ServoError('invalid', 'bad_flag', `${flag} ${text} is not a whole number from ${min} to ${max}`)
}

/** Far beyond what a machine can run at a time: a slip of the finger must not start a million processes. */
const MAX_CONCURRENCY = 1_000

export const concurrencyFlag = (text: string | undefined): { concurrency?: number } =>
  text === undefined ? {} : { concurrency: wholeNumber('--concurrency', text, { min: 1, max: MAX_CONCURRENCY }) }

export function labelsFlag(labels: readonly string[], flag = '--label'): Record<string, string> {
  return Object.fromEntries(
    labels.map((label) => {
      const at = label.indexOf('=')
      if (at > 0) return [label.slice(0, at), label.slice(at + 1)]
      throw new ServoError('invalid', 'bad_flag', `${flag} ${label} has no value`, { hint: `Write ${flag} team=sales.` })
    }),
  )
}

const MOMENT = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)?)?$/

/** A time as users write it, in UTC. A time without a zone is local to this machine; a date begins in UTC. */
export function momentFlag(flag: string, text: string): string {
  const moment = new Date(text)
  if (MOMENT.test(text) && !Number.isNaN(moment.getTime())) return moment.toISOString()
  throw new ServoError('invalid', 'bad_flag', `${flag} ${text} is not a point in time`, {
    hint: 'Write 2025-01-15T10:00:00Z, or 2025-01-15T10:00 for the time of this machine.',
  })
}

const RUN_STATES = ['PENDING', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED'] as const satisfies readonly RunState[]

/** The stored name of a state as users write it. */
export function stateFlag(text: string): RunState {
  const state = RUN_STATES.find((each) => each === text.toUpperCase())
  if (state !== undefined) return state
  const hint = `States are: ${RUN_STATES.join(', ').toLowerCase()}`
  throw new ServoError('invalid', 'bad_flag', `no run is ever ${text}`, { hint })
}

/** The value of a flag that can have these. */
export function oneOf<const V extends readonly string[]>(flag: string, text: string, values: V): V[number] {
  const found = values.find((value) => value === text)
  if (found !== undefined) return found
  throw new ServoError('invalid', 'bad_flag', `${flag} ${text} is none of ${values.join(', ')}`)
}
