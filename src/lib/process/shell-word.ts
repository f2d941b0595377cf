/** A word of a command line as a shell takes it: in quotes where it has to be. */
export const shellWord = (text: string): string => (/^[\w.,/:=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`)
