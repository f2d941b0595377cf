/** Rows as aligned text, the first being the heading: words to the left, numbers to the right. */
export function formatTable(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const isNumber = widths.map((_, column) =>
    rows.slice(1).every((row) => /^[−-]?[\d,.–]*\d[\d,.]*( ?\S{1,4})?$/.test(row[column] ?? '') || (row[column] ?? '') === ''),
  )
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => (isNumber[column] ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0)))
      .join('  ')
      .trimEnd()
  const [heading = [], ...body] = rows
  return [line(heading), widths.map((width) => '─'.repeat(width)).join('  '), ...body.map(line)].join('\n')
}

/** 1,234 or 12.3 or 0.123: three digits that mean something. */
export function number(value: number): string {
  if (!Number.isFinite(value)) return ''
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : Math.abs(value) >= 1 ? 2 : 3
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}

export const ratio = (value: number): string => (Number.isFinite(value) ? `${value.toFixed(2)}×` : '')
export const milliseconds = (value: number): string => (Number.isFinite(value) ? `${number(value)} ms` : '')
export const kilobytes = (bytes: number): string => (Number.isFinite(bytes) ? `${number(bytes / 1_000)} kB` : '')
export const megabytes = (bytes: number): string => (Number.isFinite(bytes) ? `${number(bytes / 1_000_000)} MB` : '')
