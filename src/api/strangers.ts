import { ServoError } from '../lib/error.ts'

/**
 * Refuses requests that a page of another site makes a browser send. A browser sends the page that made the request (`Origin`,
 * `Sec-Fetch-Site`) and by which name it found the server (`Host`): any other name means DNS rebinding. The command line and
 * workers are not browsers, and send neither of the first two.
 */
export function refuseStrangers(headers: Headers, hosts: readonly string[]): void {
  const host = headers.get('host') ?? ''
  const [, name = '', port = ''] = /^(.*?)(?::(\d+))?$/.exec(host) ?? []
  if (!hosts.includes(name)) throw forbidden(`this server is not ${name.slice(0, 100)}`)
  const origin = headers.get('origin')
  // A page on another port of this machine is as much a stranger as any other.
  if (origin !== null && !hosts.some((own) => origin === `http://${own}${port && `:${port}`}`))
    throw forbidden(`pages of ${origin.slice(0, 100)} may not call this server`)
  const site = headers.get('sec-fetch-site')
  // `none`: a person typed the address.
  if (site !== null && site !== 'same-origin' && site !== 'none')
    throw forbidden('pages of other sites may not call this server')
}

const forbidden = (message: string): ServoError =>
  new ServoError('invalid', 'forbidden', message, {
    hint: 'Use the servo command, or another program that is not a browser. A page can only call the server it came from.',
  })
