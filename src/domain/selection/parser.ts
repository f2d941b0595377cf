import { itemAt } from '../../lib/collections/item-at.ts'
import { nearest } from '../../lib/nearest.ts'
import { badSelection, foreignAttributes, isReserved, type Token, tokensOf } from './tokens.ts'

/** Which assets are meant, as a tree. Depths are `Infinity` when no number was given. */
export type SelectionTree =
  | { readonly op: 'all' }
  | { readonly op: 'key'; readonly pattern: string }
  | { readonly op: 'owner' | 'group' | 'kind'; readonly value: string | null }
  | { readonly op: 'is'; readonly value: 'external' | 'materializable' }
  | { readonly op: 'tag'; readonly name: string | null; readonly value: string }
  | { readonly op: 'and' | 'or'; readonly of: readonly SelectionTree[] }
  | { readonly op: 'not' | 'roots' | 'sinks'; readonly of: SelectionTree }
  | { readonly op: 'around'; readonly of: SelectionTree; readonly up: number; readonly down: number }

/** More than any person writes, few enough that reading and evaluating never exhausts the stack. */
const MAX_NESTING = 200

/** A key without `key:` in front, with its traversals. Only where the language itself has no reading for the text. */
const bareKey = /^\s*(?:(\d*)\+)?([A-Za-z0-9_*][A-Za-z0-9_.*-]*(?:\/[A-Za-z0-9_*][A-Za-z0-9_.*-]*)*)(?:\+(\d*))?\s*$/

/**
 * Reads Dagster's asset selection language. As an addition, a text that is nothing but an asset key, such as
 * `mart/revenue`, `mart/*` or `mart/revenue+`, selects by that key.
 */
export function parseSelection(text: string): SelectionTree {
  return readBareKey(text) ?? new Parser(text).whole()
}

/** The key that the text is, when it is a plain one without wildcards and traversals. */
export function plainKey(text: string): string | undefined {
  const selection = readBareKey(text)
  return selection?.op === 'key' && !selection.pattern.includes('*') ? selection.pattern : undefined
}

function readBareKey(text: string): SelectionTree | undefined {
  const found = bareKey.exec(text)
  if (found === null) return undefined
  const [, up, word = '', down] = found
  if (isReserved(word) || !/[A-Za-z_]/.test(word)) return undefined
  return around({ op: 'key', pattern: word }, depth(up), depth(down))
}

const depth = (digits: string | undefined): number => {
  if (digits === undefined) return 0
  return digits === '' ? Number.POSITIVE_INFINITY : Math.min(Number(digits), Number.MAX_SAFE_INTEGER)
}

function around(inner: SelectionTree, up: number, down: number): SelectionTree {
  return up === 0 && down === 0 ? inner : { op: 'around', of: inner, up, down }
}

class Parser {
  readonly #text: string
  readonly #tokens: readonly Token[]
  #next = 0
  #nesting = 0

  constructor(text: string) {
    this.#text = text
    this.#tokens = tokensOf(text)
  }

  whole(): SelectionTree {
    const selection = this.#either()
    if (this.#peek.kind !== 'end') throw this.#unexpected('and, or, + or the end')
    return selection
  }

  #either(): SelectionTree {
    return this.#chain('or', () => this.#chain('and', () => this.#negation()))
  }

  /** Operands joined by one operator, as one node: a thousand keys joined by `or` are wide, not deep. */
  #chain(op: 'and' | 'or', operand: () => SelectionTree): SelectionTree {
    const first = operand()
    const others: SelectionTree[] = []
    while (this.#takeKeyword(op, op.toUpperCase())) others.push(operand())
    return others.length === 0 ? first : { op, of: [first, ...others] }
  }

  #negation(): SelectionTree {
    if (!this.#takeKeyword('not', 'NOT')) return this.#traversal()
    return { op: 'not', of: this.#nested(() => this.#negation()) }
  }

  #traversal(): SelectionTree {
    // `*` is everything already: the language allows no steps around it.
    if (this.#takeSign('*')) return { op: 'all' }
    const digits = this.#takeKind('digits')
    let up: string | undefined
    if (this.#takeSign('+')) up = digits ?? ''
    else if (digits !== undefined) throw this.#unexpected('+ after the number of steps')
    const of = this.#operand()
    const down = this.#takeSign('+') ? (this.#takeKind('digits') ?? '') : undefined
    return around(of, depth(up), depth(down))
  }

  #operand(): SelectionTree {
    if (this.#takeSign('(')) return this.#inParentheses()
    const token = this.#peek
    if (token.kind !== 'keyword')
      throw this.#unexpected('an asset key, *, key:, tag:, owner:, group:, kind:, is:, roots(, sinks( or (')
    switch (token.text) {
      case 'roots':
      case 'sinks':
        this.#next += 1
        if (!this.#takeSign('(')) throw this.#unexpected(`( after ${token.text}`)
        return { op: token.text, of: this.#inParentheses() }
      case 'key':
        this.#attribute()
        return { op: 'key', pattern: this.#keyPattern() }
      case 'tag': {
        this.#attribute()
        const name = this.#value()
        // A tag without a value is one whose value is the empty text.
        return { op: 'tag', name, value: this.#takeSign('=') ? (this.#value() ?? '') : '' }
      }
      case 'owner':
      case 'group':
      case 'kind':
        this.#attribute()
        return { op: token.text, value: this.#value() }
      case 'is':
        this.#attribute()
        return { op: 'is', value: this.#nature() }
      default:
        throw this.#unexpected('key:, tag:, owner:, group:, kind:, is:, roots(, sinks( or (')
    }
  }

  #inParentheses(): SelectionTree {
    const selection = this.#nested(() => this.#either())
    if (!this.#takeSign(')')) throw this.#unexpected(') or an operator')
    return selection
  }

  #nested(read: () => SelectionTree): SelectionTree {
    this.#nesting += 1
    if (this.#nesting > MAX_NESTING) throw this.#unexpected(`at most ${MAX_NESTING} levels of nesting`)
    const selection = read()
    this.#nesting -= 1
    return selection
  }

  #attribute(): void {
    const { text } = this.#peek
    this.#next += 1
    if (!this.#takeSign(':')) throw this.#unexpected(`: after ${text}`)
  }

  #keyPattern(): string {
    const pattern = this.#takeKind('quoted') ?? this.#takeKind('word') ?? this.#takeKind('wildcard')
    if (pattern === undefined) throw this.#unexpected('an asset key')
    return pattern
  }

  #value(): string | null {
    if (this.#takeKind('null') !== undefined) return null
    const value = this.#takeKind('quoted') ?? this.#takeKind('word') ?? this.#takeAutomationWord()
    if (value === undefined) throw this.#unexpected('a value')
    return value
  }

  /** Selects sources, or assets that the project makes. */
  #nature(): 'external' | 'materializable' {
    const { text } = this.#peek
    if (text !== 'external' && text !== 'materializable') throw this.#unexpected('external or materializable')
    this.#value()
    return text
  }

  /** These three became attributes after people had used them as values, and stayed allowed. */
  #takeAutomationWord(): string | undefined {
    const { kind, text } = this.#peek
    return kind === 'keyword' && ['sensor', 'schedule', 'job'].includes(text) ? this.#takeKind('keyword') : undefined
  }

  get #peek(): Token {
    return itemAt(this.#tokens, this.#next)
  }

  #takeKind(kind: Token['kind']): string | undefined {
    if (this.#peek.kind !== kind) return undefined
    this.#next += 1
    return this.#tokens[this.#next - 1]?.text
  }

  #takeSign(sign: string): boolean {
    return this.#peek.text === sign && this.#takeKind('sign') !== undefined
  }

  #takeKeyword(...words: string[]): boolean {
    return words.includes(this.#peek.text) && this.#takeKind('keyword') !== undefined
  }

  #unexpected(expected: string): Error {
    const token = this.#peek
    return badSelection(this.#text, token.at, expected, nameOf(token), this.#hint(token))
  }

  #hint(token: Token): string | undefined {
    const [before, after] = [this.#tokens[this.#next - 1], this.#tokens[this.#next + 1]]
    const meant = token.kind === 'word' && after?.text === ':' ? nearest(token.text, attributes) : undefined
    return meant === undefined ? hintFor(token, before) : `Did you mean ${meant}:?`
  }
}

const attributes = ['key', 'tag', 'owner', 'group', 'kind', 'is']

function nameOf(token: Token): string {
  if (token.kind === 'end') return 'the end'
  return token.kind === 'quoted' ? `"${token.text.slice(0, 40)}"` : token.text.slice(0, 40)
}

function hintFor(token: Token, before: Token | undefined): string | undefined {
  if (before?.text === ':' && (token.kind === 'keyword' || token.kind === 'wildcard' || token.text === '*'))
    return `Put it in double quotes: "${token.text}".`
  if (token.kind === 'keyword' && foreignAttributes.has(token.text))
    return `Servo cannot select by ${token.text}. Use key, tag, owner, group, kind or is.`
  if (token.kind === 'word' && /^(and|or|not)$/i.test(token.text))
    return `Write ${token.text.toLowerCase()} or ${token.text.toUpperCase()}.`
  if (token.kind === 'word' || token.kind === 'wildcard') return `An asset key follows key: here, as in key:"${token.text}".`
  return undefined
}
