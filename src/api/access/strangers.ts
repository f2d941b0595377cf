import { isIP } from 'node:net'
import { ServoError } from '../../lib/error.ts'
import type { Client } from './client.ts'

/** The names that a server goes by. */
export interface OwnNames {
  /** Without ports. */
  readonly hosts: readonly string[]
  /** The address that people are given, if there is one. */
  readonly publicUrl?: URL | undefined
  /** True if other machines reach it, by any of its addresses. A page that a browser found by an address is no case of DNS rebinding. */
  readonly byAddress?: boolean | undefined
}

/**
 * Refuses requests that a page of another site makes a browser send. A browser sends the page that made the request (`Origin`,
 * `Sec-Fetch-Site`) and by which name it found the server (`Host`): any other name means DNS rebinding. The command line and
 * workers are not browsers, and send neither of the first two.
 */
export function refuseStrangers(
  headers: Headers,
  { host, protocol }: Pick<Client, 'host' | 'protocol'>,
  own: OwnNames,
  { isPage = false } = {},
): void {
  const [, name = '', port = ''] = /^(.*?)(:\d+)?$/.exec(host) ?? []
  if (!isOwnName(name, own)) throw forbidden(`this server is not ${name.slice(0, 100)}`)
  const origin = headers.get('origin')
  // A page on another port of this machine is as much a stranger as any other.
  const isOwnPage = (): boolean =>
    origin === own.publicUrl?.origin ||
    [host, ...own.hosts.map((each) => each + port)].some((each) => origin === `${protocol}://${each}`)
  if (origin !== null && !isOwnPage()) throw forbidden(`pages of ${origin.slice(0, 100)} may not call this server`)
  const site = headers.get('sec-fetch-site')
  // `none`: a person typed the address.
  if (site !== null && site !== 'same-origin' && site !== 'none' && !isPage)
    throw forbidden('pages of other sites may not call this server')
}

const isOwnName = (name: string, { hosts, publicUrl, byAddress }: OwnNames): boolean =>
  hosts.includes(name) || name === publicUrl?.hostname || (byAddress === true && isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0)

export const forbidden = (message: string): ServoError =>
  new ServoError('invalid', 'forbidden', message, {
    hint: 'Use the servo command, or another program that is not a browser. A page can only call the server it came from.',
  })
