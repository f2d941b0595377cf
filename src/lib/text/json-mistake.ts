const SPACE = /[ \t\r\n]*/y
// biome-ignore lint/suspicious/noControlCharactersInRegex: a text has none, unless they are escaped.
const TEXT = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[\dA-Fa-f]{4}))*"/y
const SCALAR = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[Ee][+-]?\d+)?|true|false|null/y

/** What is wrong with a text that should be JSON, and where: V8 often does not say. Undefined if nothing is. Counted from 1. */
export function jsonMistake(text: string): { what: string; line: number; column: number } | undefined {
  let at = 0
  const take = (pattern: RegExp): boolean => {
    pattern.lastIndex = at
    const found = pattern.exec(text)
    at += found?.[0].length ?? 0
    return found !== null
  }
  const sign = (expected: string): boolean => {
    take(SPACE)
    if (text[at] !== expected) return false
    at++
    return true
  }
  const list = (item: () => boolean, end: string): boolean => {
    if (sign(end)) return true
    do if (!item()) return false
    while (sign(','))
    return sign(end)
  }
  const name = (): boolean => {
    take(SPACE)
    return take(TEXT) && sign(':')
  }
  const value = (): boolean => {
    if (sign('{')) return list(() => name() && value(), '}')
    if (sign('[')) return list(value, ']')
    return take(TEXT) || take(SCALAR)
  }
  const isWhole = value()
  take(SPACE)
  if (isWhole && at === text.length) return undefined
  const before = text.slice(0, at).split('\n')
  const found = text.codePointAt(at)
  const what = found === undefined ? 'it ends too soon' : `unexpected ${JSON.stringify(String.fromCodePoint(found))}`
  return { what, line: before.length, column: (before.at(-1) ?? '').length + 1 }
}
