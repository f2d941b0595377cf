import { ServoError } from '../../lib/error.ts'

/**
 * The words of Dagster's asset selection language. `word`, `wildcard` and `quoted` carry a value; keywords and signs are
 * their own kind.
 */
export type TokenKind = 'word' | 'wildcard' | 'quoted' | 'null' | 'digits' | 'keyword' | 'sign' | 'end'

export interface Token {
  readonly kind: TokenKind
  /** As written; for `quoted` what is between the quotes. */
  readonly text: string
  readonly at: number
}

const operators = ['and', 'AND', 'or', 'OR', 'not', 'NOT']

/** Attributes that Dagster's grammar knows and Servo has no answer for. They keep their words, so that texts mean the same in both. */
export const foreignAttributes: ReadonlySet<string> = new Set([
  'status',
  'column',
  'table_name',
  'column_tag',
  'code_location',
  'changed_in_branch',
  'partitions',
  'automation_type',
  'sensor',
  'schedule',
  'job',
  'not_materialized_in_hours',
])

const keywords: ReadonlySet<string> = new Set([
  ...operators,
  ...['key', 'tag', 'owner', 'group', 'kind', 'is', 'roots', 'sinks'],
  ...foreignAttributes,
])

/** A word that means something to the language: as a value it must stand in quotes. */
export const isReserved = (word: string): boolean => keywords.has(word) || ['and', 'or', 'not'].includes(word.toLowerCase())

const blank = /[ \t\r\n]+/y
const shapes: readonly (readonly [RegExp, (text: string) => Pick<Token, 'kind' | 'text'>])[] = [
  // The longest match decides what a word is: `and` is an operator, `android` a word, `*` everything, `a*` a wildcard.
  [/[A-Za-z_*][A-Za-z0-9_*/]*/y, (text) => ({ kind: kindOfWord(text), text })],
  [/"[^"\\\r\n]*"/y, (text) => ({ kind: 'quoted', text: text.slice(1, -1) })],
  [/[0-9]+/y, (text) => ({ kind: 'digits', text })],
  [/<null>/y, (text) => ({ kind: 'null', text })],
  [/[+:=(),]/y, (text) => ({ kind: 'sign', text })],
]

function kindOfWord(text: string): TokenKind {
  if (text === '*') return 'sign'
  if (text.includes('*')) return 'wildcard'
  return keywords.has(text) ? 'keyword' : 'word'
}

/** Every token of the text and an `end` after them. */
export function tokensOf(text: string): Token[] {
  const tokens: Token[] = []
  let at = 0
  for (;;) {
    at += matchAt(blank, text, at).length
    if (at === text.length) return [...tokens, { kind: 'end', text: '', at }]
    const token = tokenAt(text, at)
    tokens.push(token.token)
    at += token.length
  }
}

function tokenAt(text: string, at: number): { token: Token; length: number } {
  for (const [shape, make] of shapes) {
    const found = matchAt(shape, text, at)
    if (found !== '') return { token: { ...make(found), at }, length: found.length }
  }
  const [character = ''] = text.slice(at)
  if (character === '"') throw badQuote(text, at)
  throw badSelection(text, at, 'a word, a sign or a text in quotes', JSON.stringify(character), quoteIt)
}

function badQuote(text: string, at: number): ServoError {
  const [before = ''] = /\S+$/.exec(text.slice(0, at)) ?? []
  const [line = ''] = text.slice(at + 1).split('\n', 1)
  if (line.includes('\\')) return unreadable(text, at, 'quoted text cannot contain a backslash')
  return unreadable(text, at, `the quote${before === '' ? '' : ` after ${before.slice(-SHOWN_CHARACTERS)}`} is never closed`)
}

const quoteIt = 'Put values with characters other than A-Z a-z 0-9 _ / in double quotes: key:"my-asset".'

function matchAt(shape: RegExp, text: string, at: number): string {
  shape.lastIndex = at
  return shape.exec(text)?.[0] ?? ''
}

/** The number of characters shown on either side of a mistake, so that the excerpt fits on a line of a terminal. */
const SHOWN_CHARACTERS = 36

export function badSelection(text: string, at: number, expected: string, found: string, hint?: string): ServoError {
  return unreadable(text, at, `expected ${expected}, found ${found}`, { expected, hint })
}

function unreadable(
  text: string,
  at: number,
  why: string,
  { expected, hint }: { readonly expected?: string; readonly hint?: string | undefined } = {},
): ServoError {
  const from = at > SHOWN_CHARACTERS ? at - SHOWN_CHARACTERS : 0
  const until = Math.min(text.length, at + SHOWN_CHARACTERS)
  // Text of strangers goes to a terminal here: no tabs that move the caret, no control characters that move more.
  const line = `${from > 0 ? '…' : ''}${text.slice(from, until)}${until < text.length ? '…' : ''}`.replace(/\p{C}/gu, ' ')
  const caret = ' '.repeat(at - from + (from > 0 ? 1 : 0))
  const message = `the selection cannot be read at position ${at + 1}: ${why}\n  ${line}\n  ${caret}^`
  return new ServoError('invalid', 'bad_selection', message, {
    hint:
      hint ??
      'Examples: mart/revenue, * for all, key:"mart/*", tag:stage=gold and not kind:dbt, 1+key:revenue+, roots(group:raw).',
    facts: { selection: text, position: at, ...(expected !== undefined && { expected }) },
  })
}
