import { ServoClient } from '../../client/client.ts'
import { ServoError } from '../../lib/error.ts'
import { isLoopbackName } from '../../lib/safe-url.ts'
import { PATIENCE_SEC } from '../find-leader.ts'
import { badFlag } from '../flags.ts'
import { note } from '../output.ts'

export interface RemoteFlags {
  /** Of the server to ask, instead of the one of a project here. */
  url?: string
  token?: string
}

/** The server that --url or SERVO_URL names; undefined if the command is about a project on this machine. */
export function remoteServer({ url, token }: RemoteFlags): ServoClient | undefined {
  if (url === undefined) {
    if (token !== undefined) throw badFlag('--token needs --url', 'Name the server: --url https://servo.example, or SERVO_URL.')
    return undefined
  }
  const address = addressOf(url)
  if (token === undefined || token === '')
    throw new ServoError('invalid', 'no_token', `no token for ${address}`, {
      hint: 'Set SERVO_TOKEN, or give --token. servo tokens create makes one, on the machine of the server.',
    })
  if (/[^\x21-\x7e]/.test(token)) throw badFlag('the token has characters that no token has', 'Copy it once more.')
  const ifSilent = 'Check --url (or SERVO_URL), and that a server runs there.'
  return new ServoClient({ url: address, token, retries: 0, waitSec: PATIENCE_SEC, ifSilent })
}

function addressOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !['http:', 'https:'].includes(url.protocol) || url.search !== '' || url.hash !== '')
    throw badFlag(`invalid value '${text}' for --url`, 'Use the address of a server, such as https://servo.example.')
  if (url.username !== '' || url.password !== '')
    throw badFlag('--url must not have a user or a password', 'Give the token as SERVO_TOKEN or --token.')
  if (url.protocol === 'http:' && !isLoopbackName(url.hostname))
    note(`the token is sent unencrypted to ${url.host}; use https if others can listen`)
  return url.href.replace(/\/+$/, '')
}
