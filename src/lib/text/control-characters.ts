// biome-ignore lint/suspicious/noControlCharactersInRegex: this is the one place that recognises them.
const CONTROL_CHARACTER = /[\u0000-\u001f\u007f]/

/** True if the text has no line break, no escape and no other ASCII control character. */
export const hasNoControlCharacters = (text: string): boolean => !CONTROL_CHARACTER.test(text)
