import type { LogEntry } from './pipe.ts'

/** As much as stands in a line; the stored entry has all of it. */
const MAX_FIELDS = 2_000

/** An entry of a log as people read it: its text, then its fields: `read  rows=300 from="the shop"`. */
export function logText({ text, fields }: Pick<LogEntry, 'text' | 'fields'>): string {
  const pairs = Object.entries(fields ?? {}).map(([name, value]) => `${name}=${fieldText(value)}`)
  const line = pairs.join(' ')
  const shown = line.length > MAX_FIELDS ? `${line.slice(0, MAX_FIELDS)}…`.toWellFormed() : line
  return shown === '' ? text : `${text.replace(/\n$/, '')}  ${shown}`
}

/** Quoted if it would not be seen as one word. */
const fieldText = (value: unknown): string =>
  typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : (JSON.stringify(value) ?? String(value))
