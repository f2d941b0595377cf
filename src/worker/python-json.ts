import { wellFormed } from '../lib/text/well-formed.ts'

/** A text, which is kept as it is, a number, or one of the numbers that Python writes and JSON does not have. */
const TOKEN = /"(?:[^"\\]|\\.)*"|-?Infinity|NaN|-?\d[\d.eE+-]*/g
/** So many digits, or so large an exponent, may be more than a number of JavaScript has. */
const MANY_DIGITS = /\d{16}|e\+?\d{3}/i
const INTEGER = /^-?\d+$/
/** Halves of surrogate pairs are escaped, because they have no UTF-8 form. */
const ODD_TEXT = /\\ud[89a-f]|__proto__/i

/**
 * Reads JSON as Python writes it. What JavaScript has no number for becomes text, so that nothing is lost or changed: `NaN`, `Infinity`,
 * and integers beyond 2^53 with all their digits.
 */
export function parsePythonJson(text: string): unknown {
  const value = parsed(text)
  return ODD_TEXT.test(text) ? wellFormed(value) : value
}

function parsed(text: string): unknown {
  if (MANY_DIGITS.test(text)) return JSON.parse(quoted(text))
  try {
    return JSON.parse(text)
  } catch {
    return JSON.parse(quoted(text))
  }
}

const quoted = (text: string): string => text.replace(TOKEN, (token) => (isReadable(token) ? token : `"${token}"`))

/** True for texts, and for numbers that JavaScript has too. */
function isReadable(token: string): boolean {
  if (token.startsWith('"')) return true
  const number = Number(token)
  return INTEGER.test(token) ? Number.isSafeInteger(number) : Number.isFinite(number)
}
