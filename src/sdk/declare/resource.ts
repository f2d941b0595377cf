import { isServoError, messageOf, ServoError } from '../../lib/error.ts'
import { callerOf } from '../caller.ts'
import { declarationOf, optionsOf, withDeclaration } from '../declaration.ts'
import { checkedName, invalid, show } from '../invalid.ts'
import { checkOptionNames } from '../option-names.ts'
import { isSchema, issuesText, type StandardSchemaV1 } from '../standard-schema.ts'
import { variableName } from '../variable-name.ts'
import type { MaybePromise } from './values.ts'

/** Exists only in types: the opened resource. */
declare const opens: unique symbol

/** Something that assets use and the environment configures: a database, an API. */
export interface Resource<T> {
  readonly name: string
  readonly [opens]?: T
}

export type AnyResource = Resource<unknown>
/** The opened resources in the context of a body. */
export type Opened<Resources> = { [Name in keyof Resources]: Resources[Name] extends Resource<infer T> ? T : never }

export interface ResourceOptions<Config, T> {
  /** Servo reads each field from a variable: `apiToken` of resource `shop-api` from SERVO_SHOP_API_API_TOKEN. */
  config?: StandardSchemaV1<unknown, Config>
  /**
   * Fields to redact in errors, logs, checks and metadata. Variables whose names contain TOKEN, KEY, SECRET or PASSWORD are always
   * redacted.
   */
  secrets?: readonly (keyof NoInfer<Config> & string)[]
  open(config: Config): MaybePromise<T>
  close?(opened: T): MaybePromise<void>
}

export function resource<T, Config = undefined>(name: string, options: ResourceOptions<Config, T>): Resource<T> {
  checkedName(name, 'resource')
  if (typeof options?.open !== 'function')
    throw invalid('bad_resource', `resource ${name} needs \`open\``, `Write resource('${name}', { open: () => … }).`)
  checkOptionNames(`resource ${name}`, options, ['config', 'secrets', 'open', 'close'])
  const { secrets = [] } = options
  if (!Array.isArray(secrets) || secrets.some((field) => typeof field !== 'string' || field === ''))
    throw invalid(
      'bad_secrets',
      `\`secrets\` of resource ${name} cannot be ${show(secrets)}`,
      "List fields of its config: secrets: ['dsn'].",
    )
  if (options.config !== undefined && !isSchema(options.config))
    throw invalid('bad_schema', `\`config\` of resource ${name} must be a schema`, 'Write config: z.object({ url: z.url() }).')
  return withDeclaration<Resource<T>>({ name }, { kind: 'resource', name, options, ...callerOf(resource) })
}

/** Why a resource could not be opened in this environment: a variable is missing, or has a value that does not fit. */
export async function misconfigured(value: AnyResource, environment: EnvironmentVariables): Promise<ServoError | undefined> {
  const { config } = optionsOf<ResourceOptions<unknown, unknown>>(value)
  try {
    if (config !== undefined) await configOf(value.name, config, environment)
    return undefined
  } catch (error) {
    if (isServoError(error, 'invalid')) return error
    throw error
  }
}

type EnvironmentVariables = Readonly<Record<string, string | undefined>>

/** Opens a resource with the settings of the environment. The second function closes it. */
async function openResource(
  value: AnyResource,
  environment: EnvironmentVariables,
): Promise<{ opened: unknown; close: () => MaybePromise<void> }> {
  const options = declarationOf(value)?.options as ResourceOptions<unknown, unknown>
  const opened = await options.open(options.config && (await configOf(value.name, options.config, environment)))
  return { opened, close: () => options.close?.(opened) }
}

export interface Opening {
  /** Resources that are open already, by their names in the code. */
  readonly given?: Readonly<Record<string, unknown>> | undefined
  readonly environment?: EnvironmentVariables | undefined
  warn(text: string): void
}

/** The resources of code while it runs. */
export class OpenResources {
  readonly #opening: Opening
  readonly #closing: (() => Promise<void>)[] = []

  constructor(opening: Opening) {
    this.#opening = opening
  }

  async open(declared: Readonly<Record<string, AnyResource>> = {}): Promise<Record<string, unknown>> {
    const { given = {}, environment = process.env, warn } = this.#opening
    const all: Record<string, unknown> = {}
    for (const [name, resource] of Object.entries(declared)) {
      if (Object.hasOwn(given, name)) {
        all[name] = given[name]
        continue
      }
      const { opened, close } = await openResource(resource, environment)
      all[name] = opened
      this.#closing.push(async () => {
        try {
          await close()
        } catch (error) {
          // The result is made by then, so an error while a resource closes must not lose it.
          warn(`closing ${resource.name} failed: ${messageOf(error)}`)
        }
      })
    }
    return all
  }

  /** Closes those that it opened, the last first. */
  async close(): Promise<void> {
    for (const close of this.#closing.reverse()) await close()
  }
}

/** The variables of the fields that a resource declares as secret. */
export const secretVariablesOf = (resource: AnyResource): string[] => {
  const { secrets = [] } = optionsOf<{ secrets?: readonly string[] }>(resource)
  return secrets.map((field) => variableOf(resource.name, field))
}

/** `shop-api`, `apiToken` → `SERVO_SHOP_API_API_TOKEN` */
const variableOf = (resourceName: string, field: string): string =>
  `SERVO_${resourceName.replace(/[^A-Za-z0-9]/g, '_').toUpperCase()}_${variableName(field)}`

async function configOf(name: string, schema: StandardSchemaV1, environment: EnvironmentVariables): Promise<unknown> {
  const lookUp = (field: string): string | undefined => environment[variableOf(name, field)]
  // A schema cannot list its fields. It parses an object that looks each field up in the environment.
  const config = new Proxy<Record<string, unknown>>(
    {},
    {
      get: (_, field) => (typeof field === 'string' ? lookUp(field) : undefined),
      has: (_, field) => typeof field === 'string' && lookUp(field) !== undefined,
    },
  )
  const result = await schema['~standard'].validate(config)
  if (result.issues === undefined) return result.value
  const fields = result.issues.map(({ path }) => path?.[0]).map((step) => String(typeof step === 'object' ? step.key : step))
  const missing = fields.map((field) => variableOf(name, field)).filter((variable) => environment[variable] === undefined)
  throw missing.length > 0
    ? new ServoError('invalid', 'missing_variable', `resource ${name} needs ${[...new Set(missing)].join(', ')}`, {
        hint: `Add ${missing.length === 1 ? 'it' : 'them'} to .env, or set ${missing.length === 1 ? 'it' : 'them'} in the environment of servo dev.`,
      })
    : new ServoError('invalid', 'bad_variable', `resource ${name} is misconfigured: ${issuesText(result.issues)}`, {
        hint: `Check ${[...new Set(fields)].map((field) => variableOf(name, field)).join(', ')}.`,
      })
}
