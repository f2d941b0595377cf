/** True for a name or an address of this machine, as URLs have it. */
export const isLoopbackName = (name: string): boolean => /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(name)

/** True for https, and for http to this machine, where nobody can listen in between. */
export function isSafeUrl(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || url.username !== '' || url.password !== '') return false
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopbackName(url.hostname))
}
