import { Redactor, secretsOf } from '../../lib/redactor.ts'
import { printable } from '../output.ts'

export const logFormats = ['json', 'text'] as const
export type LogFormat = (typeof logFormats)[number]
export type LogLevel = 'info' | 'warn' | 'error'
export type LogFields = Readonly<Record<string, unknown>>

interface ServerLogOptions {
  readonly format: LogFormat
  readonly write: (line: string) => void
  readonly environment: Readonly<Record<string, string | undefined>>
}

/** What a server tells of itself, a line for each thing that happened, without the secrets of its environment. */
export class ServerLog {
  readonly #options: ServerLogOptions
  readonly #redactor = new Redactor()

  constructor(options: ServerLogOptions) {
    this.#options = options
    this.learnSecrets()
  }

  /** Call when the environment may have changed; these variables are secrets whatever their names are. */
  learnSecrets(declared: readonly string[] = []): void {
    this.#redactor.learn(secretsOf(this.#options.environment, declared))
  }

  info(message: string, fields: LogFields = {}): void {
    this.#add('info', message, fields)
  }

  warn(message: string, fields: LogFields = {}): void {
    this.#add('warn', message, fields)
  }

  error(message: string, fields: LogFields = {}): void {
    this.#add('error', message, fields)
  }

  #add(level: LogLevel, message: string, fields: LogFields): void {
    const { format, write } = this.#options
    const time = new Date().toISOString()
    const told = this.#redactor.members({ message, ...known(fields) })
    if (format === 'json') {
      write(JSON.stringify({ time, level, ...told }))
      return
    }
    const { message: text, ...others } = told
    const pairs = Object.entries(others).map(([name, value]) => `  ${name}=${wordOf(value)}`)
    write(printable(`${time} ${level.padEnd(5)} ${lineOf(text)}${pairs.join('')}`))
  }
}

/** What is not known is left out. */
const known = (fields: LogFields): LogFields =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null))

/** One line, however many the text has. */
const lineOf = (text: unknown): string => String(text).replaceAll(/\s*\n\s*/g, ' | ')

const wordOf = (value: unknown): string =>
  typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value)
