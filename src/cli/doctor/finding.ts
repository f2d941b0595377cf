import { hasErrorCode, isServoError, messageOf } from '../../lib/error.ts'
import { wrapText } from '../columns.ts'
import { printable } from '../output.ts'

export type Area = 'node' | 'project' | 'variables' | 'store' | 'clock' | 'disk' | 'leader'

/** One thing that `servo doctor` looked at. */
export interface Finding {
  /** Servo works with a warning, and does not with a problem, or not for long. */
  readonly level: 'ok' | 'warning' | 'problem'
  readonly area: Area
  readonly message: string
  /** What to do about it. */
  readonly hint?: string
}

export const fine = (area: Area, message: string): Finding => ({ level: 'ok', area, message })

export const warning = (area: Area, message: string, hint: string): Finding => ({ level: 'warning', area, message, hint })

export const problem = (area: Area, message: string, hint?: string): Finding => ({
  level: 'problem',
  area,
  message,
  ...(hint !== undefined && { hint }),
})

/** What a check finds. A check that fails is a problem among others. */
export async function examine(area: Area, check: () => Promise<readonly Finding[]>): Promise<readonly Finding[]> {
  try {
    return await check()
  } catch (error) {
    return [problem(area, messageOf(error), hintOf(error))]
  }
}

function hintOf(error: unknown): string | undefined {
  if (isServoError(error)) return error.hint
  return hasErrorCode(error, 'EACCES') || hasErrorCode(error, 'EPERM') ? 'Check its owner and permissions.' : undefined
}

/** A message of several lines has a place in a query or a file, marked in the line below it: those stay as they are. */
export function shownLines({ message, hint }: { message: string; hint?: string | undefined }, room: number): string[] {
  const lines = message.trimEnd().split('\n').map(printable)
  if (lines.length > 1) return [...lines, ...(hint === undefined ? [] : wrapText(printable(hint), room))]
  return wrapText(printable(hint === undefined ? message.trim() : `${message.trim()}. ${hint}`), room)
}
