import { writeFileSync } from 'node:fs'
import { deflateSync } from 'node:zlib'
import type { AttemptResultInput, DispatchEnvelope } from '../../contract/dispatch.ts'
import type { LogEntry } from '../../contract/pipe.ts'
import { sha256 } from '../../lib/hash.ts'
import { isObject } from '../../lib/is-object.ts'
import { parsePythonJson } from '../python-json.ts'

type Output = NonNullable<AttemptResultInput['output']>
/** A JSON object of the Pipes protocol. */
type PipesObject = Readonly<Record<string, unknown>>

/** The context that a program gets, in the format of Dagster Pipes 0.1. */
export interface PipesContext {
  readonly asset_keys: readonly string[]
  readonly code_version_by_asset_key: Readonly<Record<string, string | null>>
  readonly provenance_by_asset_key: Readonly<Record<string, null>>
  readonly partition_key: string | null
  readonly partition_key_range: { readonly start: string; readonly end: string } | null
  readonly partition_time_window: { readonly start: string; readonly end: string } | null
  readonly run_id: string
  readonly job_name: null
  /** 0 for the first attempt. */
  readonly retry_number: number
  readonly extras: PipesObject
}

/** The context of an attempt. `window` is the time that its partition stands for, if any. */
export function pipesContext(
  { asset_key, partition, run_id, attempt }: DispatchEnvelope,
  codeVersion: string | null,
  window: PipesContext['partition_time_window'] | undefined,
  inputs?: PipesObject,
): PipesContext {
  const keys = partition ? (partition.keys ?? [partition.key]) : []
  return {
    asset_keys: [asset_key],
    code_version_by_asset_key: { [asset_key]: codeVersion },
    provenance_by_asset_key: { [asset_key]: null },
    // None for a range: a program that knows nothing of ranges must not take the name of the range for a partition.
    partition_key: keys.length === 1 ? (keys[0] ?? null) : null,
    partition_key_range: partition ? { start: keys[0] ?? '', end: keys.at(-1) ?? '' } : null,
    partition_time_window: window ?? null,
    run_id,
    job_name: null,
    retry_number: attempt - 1,
    extras: { ...(partition?.values && { partition_values: partition.values }), ...(inputs && { inputs }) },
  }
}

/** How Pipes puts a parameter into the environment: JSON, compressed as zlib (RFC 1950), in base64. */
export function encodeParameter(value: object): string {
  return deflateSync(JSON.stringify(value)).toString('base64')
}

/** Linux passes on at most 128 KiB per variable. A larger context, of an attempt with many inputs, goes into a file. */
const MAX_VARIABLE = 64 * 1024

/** The two variables by which a program finds its context and the file it reports to. `contextFile` is written if it is needed. */
export function pipesEnvironment(
  context: PipesContext,
  { messages, contextFile }: { readonly messages: string; readonly contextFile: string },
): Record<string, string> {
  const direct = encodeParameter({ data: context })
  const isLarge = direct.length > MAX_VARIABLE
  if (isLarge) writeFileSync(contextFile, JSON.stringify(context))
  return {
    DAGSTER_PIPES_CONTEXT: isLarge ? encodeParameter({ path: contextFile }) : direct,
    DAGSTER_PIPES_MESSAGES: encodeParameter({ path: messages }),
  }
}

/** An exception of the program, as the program described it. */
export interface PipesException {
  readonly message: string
  readonly traceback: string
}

/** As long as an id may be. */
const MAX_VERSION = 512

/** Collects what a program reports, message by message. */
export class PipesReport {
  readonly metadata: Record<string, unknown> = {}
  readonly checks: NonNullable<Output['checks']> = []
  readonly #assetKey: string
  readonly #log: (entry: Omit<LogEntry, 'at'>) => void
  readonly #custom: unknown[] = []
  #session: 'unopened' | 'open' | 'closed' = 'unopened'
  #dataVersion: string | undefined
  #exception: PipesException | undefined

  constructor(assetKey: string, log: (entry: Omit<LogEntry, 'at'>) => void) {
    this.#assetKey = assetKey
    this.#log = log
  }

  /** How far the program got with Pipes. A program that closes without having opened stays `unopened`. */
  get session(): 'unopened' | 'open' | 'closed' {
    return this.#session
  }

  get dataVersion(): string | undefined {
    return this.#dataVersion
  }

  get exception(): PipesException | undefined {
    return this.#exception
  }

  /** Reads one line of the messages file. */
  read(line: string): void {
    const message = messageIn(line)
    if (message === undefined) this.#warn(`ignored a line that is not a Pipes message: ${line.slice(0, 200)}`)
    else this.#apply(message.method, message.params)
  }

  #apply(method: string, params: PipesObject): void {
    if (method === 'opened') this.#open()
    else if (method === 'closed') this.#close(params)
    else if (method === 'log') this.#log({ stream: 'log', level: levelOf(params['level']), text: String(params['message']) })
    else if (method === 'report_asset_materialization') this.#materialized(params)
    else if (method === 'report_asset_check') this.#checked(params)
    else if (method === 'report_custom_message') {
      this.#custom.push(params['payload'])
      this.metadata['custom_messages'] = this.#custom
    } else if (method === 'log_external_stream') {
      const stream = params['stream'] === 'stderr' ? 'stderr' : 'stdout'
      this.#log({ stream, text: String(params['text']).replace(/\n$/, '') })
    } else this.#warn(`ignored a Pipes message of an unknown kind: ${method}`)
  }

  #open(): void {
    if (this.#session === 'unopened') this.#session = 'open'
  }

  #close({ exception }: PipesObject): void {
    if (this.#session === 'open') this.#session = 'closed'
    if (isPipesObject(exception)) this.#exception = exceptionOf(exception)
  }

  #materialized(params: PipesObject): void {
    if (!this.#isOurs(params)) return
    Object.assign(this.metadata, plainMetadata(params['metadata']))
    const { data_version: version } = params
    // Equal texts stay equal, however long they are.
    if (typeof version === 'string' && version !== '')
      this.#dataVersion = version.length > MAX_VERSION ? sha256(version) : version
  }

  #checked(params: PipesObject): void {
    if (!this.#isOurs(params)) return
    this.checks.push({
      name: String(params['check_name']),
      ok: params['passed'] === true,
      severity: params['severity'] === 'WARN' ? 'warn' : 'error',
      metadata: plainMetadata(params['metadata']),
    })
  }

  #isOurs({ asset_key }: PipesObject): boolean {
    if (asset_key === undefined || asset_key === null || asset_key === this.#assetKey) return true
    this.#warn(`ignored a report about ${asset_key}: this attempt materializes ${this.#assetKey}`)
    return false
  }

  #warn(text: string): void {
    this.#log({ stream: 'log', level: 'warn', text })
  }
}

function messageIn(line: string): { readonly method: string; readonly params: PipesObject } | undefined {
  try {
    const message = parsePythonJson(line)
    if (!isPipesObject(message)) return undefined
    const { method, params } = message
    return { method: String(method ?? ''), params: isPipesObject(params) ? params : {} }
  } catch {
    return undefined
  }
}

/** Types that add nothing to the value itself. */
const plainTypes = new Set(['__infer__', 'text', 'int', 'float', 'bool', 'json', 'null'])

/** Metadata as people write it. A type that means something, such as `url` or `md`, stays with its value. */
function plainMetadata(metadata: unknown): Record<string, unknown> {
  if (!isPipesObject(metadata)) return {}
  const plainValue = (value: unknown): unknown =>
    isPipesObject(value) && 'raw_value' in value && plainTypes.has(String(value['type'])) ? value['raw_value'] : value
  return Object.fromEntries(Object.entries(metadata).map(([name, value]) => [name, plainValue(value)]))
}

/** An exception as Python would have printed it, with its cause. */
function exceptionOf(exception: PipesObject): PipesException {
  const message = String(exception['message'] ?? exception['name'] ?? 'an exception').trim()
  const stack = Array.isArray(exception['stack']) ? exception['stack'].join('') : ''
  const own = `Traceback (most recent call last):\n${stack}${message}`
  const { cause, context } = exception
  if (isPipesObject(cause))
    return { message, traceback: `${exceptionOf(cause).traceback}\n\nwhich was the direct cause of:\n\n${own}` }
  if (isPipesObject(context))
    return { message, traceback: `${exceptionOf(context).traceback}\n\nwhile it was handled:\n\n${own}` }
  return { message, traceback: own }
}

const isPipesObject = (value: unknown): value is PipesObject => isObject(value) && !Array.isArray(value)

const levels: Readonly<Record<string, LogEntry['level']>> = {
  DEBUG: 'debug',
  INFO: 'info',
  WARNING: 'warn',
  ERROR: 'error',
  CRITICAL: 'error',
}

const levelOf = (level: unknown): NonNullable<LogEntry['level']> => levels[String(level).toUpperCase()] ?? 'info'
