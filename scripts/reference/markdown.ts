const NOTE = '<!-- Written by scripts/reference.ts from the definitions in src/. Change those, then `npm run reference`. -->'

/** Paragraphs as a page, with a note for those who would edit it. */
export const page = (...paragraphs: string[]): string => [NOTE, ...paragraphs, ''].join('\n\n')

/** Text inside a table cell; only `|` and line ends would break out of it. */
const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ')
export const code = (text: string): string => `\`${text}\``
export const row = (...cells: string[]): string => `| ${cells.map(cell).join(' | ')} |`

export const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [row(...head), row(...head.map(() => '---')), ...rows.map((cells) => row(...cells))].join('\n')
