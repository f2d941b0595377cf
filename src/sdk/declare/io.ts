import { callerOf } from '../caller.ts'
import { declarationOf, withDeclaration } from '../declaration.ts'
import { checkedName, invalid } from '../invalid.ts'
import { checkOptionNames } from '../option-names.ts'
import type { MaybePromise } from './values.ts'

export interface IoOptions<Value> {
  write(value: Value): MaybePromise<Uint8Array | string>
  read(bytes: Uint8Array): MaybePromise<Value>
}

/** Writes values that are neither JSON nor rows as bytes, and reads them back. */
export interface Io<Value> {
  readonly name: string
  write(value: Value): MaybePromise<Uint8Array | string>
  read(bytes: Uint8Array): MaybePromise<Value>
}

/** Names that the contract gives a meaning of its own. */
const taken = ['json', 'parquet', 'none']

export function io<Value>(name: string, options: IoOptions<Value>): Io<Value> {
  checkedName(name, 'IO')
  if (taken.includes(name))
    throw invalid('bad_name', `the IO name ${name} is reserved`, `Choose a name other than ${taken.join(', ')}.`)
  if (typeof options?.write !== 'function' || typeof options.read !== 'function')
    throw invalid(
      'bad_io',
      `IO ${name} needs \`write\` and \`read\``,
      `Write io('${name}', { write: (value) => bytes, read: (bytes) => value }).`,
    )
  checkOptionNames(`IO ${name}`, options, ['write', 'read'])
  const value: Io<Value> = { name, write: (it) => options.write(it), read: (bytes) => options.read(bytes) }
  return withDeclaration(value, { kind: 'io', name, options, ...callerOf(io) })
}

export const isIo = (value: unknown): value is Io<unknown> => declarationOf(value)?.kind === 'io'
