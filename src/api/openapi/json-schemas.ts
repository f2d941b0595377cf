import { z } from 'zod'
import { answerNames } from '../answers/told.ts'

export type JsonSchema = z.core.JSONSchema.BaseSchema

/** Says nothing to a reader: every whole number that JSON can carry exactly is within. */
const isSafeBound = (bound: unknown): boolean => typeof bound === 'number' && Math.abs(bound) === Number.MAX_SAFE_INTEGER

/** The same moment for readers as the long pattern by which zod checks it, leap years and all. */
const IN_UTC = 'Z$'

/** What is to be said of a schema more briefly than zod does. */
function tidy(schema: JsonSchema, description: string | undefined): void {
  if (isSafeBound(schema.minimum)) delete schema.minimum
  if (isSafeBound(schema.maximum)) delete schema.maximum
  if (schema.format === 'date-time') schema.pattern = IN_UTC
  if (schema.propertyNames !== undefined && Object.keys(schema.propertyNames).join() === 'type') delete schema.propertyNames
  if (description !== undefined) schema.description = description
}

const DEFINED = '#/$defs/'

/** Turns schemas into JSON Schema. Answers that have a name become components, which the others refer to. */
export class JsonSchemas {
  readonly #components = new Map<string, JsonSchema>()

  /** By name, in the order of the alphabet. */
  get components(): Record<string, JsonSchema> {
    return Object.fromEntries([...this.#components].sort(([a], [b]) => (a < b ? -1 : 1)))
  }

  /** What a caller may send. What is not declared is refused. */
  ofRequest(schema: z.ZodType): JsonSchema {
    const made = z.toJSONSchema(schema, {
      io: 'input',
      unrepresentable: 'any',
      metadata: z.registry(),
      override: ({ zodSchema, jsonSchema }) => {
        tidy(jsonSchema, z.globalRegistry.get(zodSchema)?.description)
        if (jsonSchema.properties !== undefined) jsonSchema.additionalProperties ??= false
      },
    })
    delete made.$schema
    return made
  }

  /** What a caller gets. */
  ofAnswer(schema: z.ZodType): JsonSchema {
    const {
      $schema: _,
      $defs = {},
      ...made
    } = z.toJSONSchema(schema, {
      io: 'output',
      unrepresentable: 'any',
      metadata: answerNames,
      override: ({ zodSchema, jsonSchema }) => {
        tidy(jsonSchema, z.globalRegistry.get(zodSchema)?.description)
        delete jsonSchema.id
      },
    })
    // zod also lists, under names of its own, parts of a schema that is made of itself; nothing refers to them.
    for (const [name, defined] of Object.entries($defs)) if (!name.startsWith('__')) this.#define(name, defined)
    const name = answerNames.get(schema)?.id
    if (name === undefined) return componentsFor(made)
    if ($defs[name] === undefined) this.#define(name, made)
    return { $ref: `#/components/schemas/${name}` }
  }

  #define(name: string, schema: JsonSchema): void {
    this.#components.set(name, componentsFor(schema, name))
  }
}

/** A schema whose references lead to components; one to itself leads to the component of this name. */
function componentsFor(schema: JsonSchema, name?: string): JsonSchema {
  const text = JSON.stringify(schema, (key, value: unknown) => {
    if (key !== '$ref' || typeof value !== 'string') return value
    if (value === '#' && name !== undefined) return `#/components/schemas/${name}`
    return value.startsWith(DEFINED) ? `#/components/schemas/${value.slice(DEFINED.length)}` : value
  })
  return JSON.parse(text)
}
