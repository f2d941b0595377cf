import fs from 'node:fs'
import path from 'node:path'

export const root = path.resolve(import.meta.dirname, '../../..')

/**
 * A fenced block of a page, by what becomes of it:
 *
 * - `file`: its first line is a comment with the name of a file, which it is in the project of the page.
 * - `commands`: `sh`, run line by line in that project; each must end with 0.
 * - `transcript`: `console`, commands after `$ ` with what they print, compared loosely.
 * - `shown`: not run, because the page says why (`<!-- not run: … -->` above the block, or once at the top for the whole page), or because it is `text` or `json`.
 */
export interface Block {
  readonly kind: 'file' | 'commands' | 'transcript' | 'shown'
  readonly language: string
  readonly text: string
  readonly line: number
  /** Of a file. */
  readonly file?: string
}

export interface Page {
  readonly name: string
  readonly blocks: readonly Block[]
  /** Blocks that say neither what they are nor why they are not run. */
  readonly undeclared: readonly string[]
}

/** The pages for users. Reference pages are written from the source, and decisions are history. */
export function pages(): readonly Page[] {
  const docs = fs
    .readdirSync(path.join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md') && !/^(?:adr|reference)\b/.test(file))
    .map((file) => `docs/${file}`)
  return ['README.md', TEMPLATE, ...docs.sort()].map((name) => pageOf(name, fs.readFileSync(path.join(root, name), 'utf8')))
}

/** Becomes the page of a user's project, where a note for our tests would puzzle. The quick start runs its commands. */
const TEMPLATE = 'template/README.md'

const FENCE = /(?:^<!-- not run: (.+) -->\n\n?)?^( *)```(\S*)\n([\s\S]*?)^ *```$/gm
const WHOLE_PAGE = /^<!-- not run on this page: .+ -->$/m
/** `// assets/orders.ts`, `# scripts/export.sh`, `-- report.sql` */
const FILE_NAME = /^(?:\/\/|#|--) (\S+\.[a-z]+)\n/

export function pageOf(name: string, markdown: string): Page {
  const undeclared: string[] = []
  const isExempt = name === TEMPLATE || WHOLE_PAGE.test(markdown)
  const blocks = [...markdown.matchAll(FENCE)].map((match): Block => {
    const [, reason, indent = '', language = '', body = ''] = match
    const text = body.replaceAll(new RegExp(`^${indent}`, 'gm'), '')
    const line = markdown.slice(0, match.index).split('\n').length
    const [, file] = FILE_NAME.exec(text) ?? []
    const block = { language, text, line }
    if (reason !== undefined) return { ...block, kind: 'shown' }
    if (file !== undefined) return { ...block, kind: 'file', file }
    if (isExempt) return { ...block, kind: 'shown' }
    if (language === 'sh') return { ...block, kind: 'commands' }
    if (language === 'console') return { ...block, kind: 'transcript' }
    if (language !== 'text' && language !== 'json') undeclared.push(`${name}:${line}`)
    return { ...block, kind: 'shown' }
  })
  return { name, blocks, undeclared }
}

/** A file to save, or a command to run. */
export type Step =
  | { readonly line: number; readonly file: string; readonly text: string }
  | { readonly line: number; readonly command: string; readonly shown?: string }

export type CommandStep = Extract<Step, { command: string }>

/** What a reader of the page does, in that order. A command may end with `\`, and with a comment. */
export function stepsOf(page: Page): readonly Step[] {
  return page.blocks.flatMap(({ kind, text, line, file }): Step[] => {
    if (file !== undefined) return [{ line, file, text }]
    if (kind === 'commands') return linesOf(text).map((command) => ({ line, command }))
    if (kind !== 'transcript') return []
    return text.split(/^\$ /m).flatMap((part) => {
      const [command = '', ...output] = part.split('\n')
      return command === '' ? [] : [{ line, command, shown: output.join('\n') }]
    })
  })
}

/** Every `servo` command line of a page, those that are not run included. */
export function servoLinesOf(page: Page): readonly CommandStep[] {
  const shown = page.blocks
    .filter(({ kind, language }) => kind === 'shown' && language === 'sh')
    .flatMap(({ text, line }) => linesOf(text).map((command) => ({ line, command })))
  const run = stepsOf(page).filter((step) => 'command' in step)
  return [...run, ...shown].filter(({ command }) => /^(?:npx )?servo\b/.test(command))
}

const linesOf = (text: string): readonly string[] =>
  text
    .replaceAll('\\\n', ' ')
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('#'))

/** The words of a command line; undefined if it needs a shell: a pipe, a redirection, a substitution. */
export function wordsOf(command: string): readonly string[] | undefined {
  const words: string[] = []
  const token = /\s*(?:#.*$|((?:'[^']*'|"[^"$`]*"|[^\s'"#|&;<>$`()][^\s'"|&;<>$`()]*)+))/y
  while (token.lastIndex < command.trimEnd().length) {
    const match = token.exec(command)
    if (match === null) return undefined
    const [, word] = match
    if (word === undefined) break
    words.push(word.replaceAll(/'([^']*)'|"([^"]*)"/g, (_, single?: string, double?: string) => single ?? double ?? ''))
  }
  return words
}
