import { dimensionNames } from '../../partitions/definition.ts'
import { invalid, show } from '../invalid.ts'
import { isOwn } from '../partitions/mapped.ts'
import { isPartitions } from '../partitions/partitions.ts'
import { isSchema } from '../standard-schema.ts'
import { variableName } from '../variable-name.ts'

/** What Servo tells a program in its environment, besides the variables of its inputs and of the dimensions of its partition. */
const programVariables = [
  'SERVO_ASSET',
  'SERVO_PARTITION',
  'SERVO_WINDOW_START',
  'SERVO_WINDOW_END',
  'SERVO_RUN_ID',
  'SERVO_ATTEMPT',
  'SERVO_INPUTS',
  'SERVO_OUTPUT',
  'TRACEPARENT',
] as const

/** `rawOrders` → `SERVO_INPUT_RAW_ORDERS` */
export const inputVariable = (name: string): string => `SERVO_INPUT_${variableName(name)}`

/** `region` → `SERVO_PARTITION_REGION` */
export const dimensionVariable = (name: string): string => `SERVO_PARTITION_${variableName(name)}`

/** True for a variable that is set for each attempt. Programs that Servo starts may start Servo, and must not pass theirs on. */
export const isProgramVariable = (name: string): boolean =>
  programVariables.some((variable) => variable === name) || /^SERVO_(?:INPUT|PARTITION)_/.test(name)

type GivenOptions = Readonly<Record<string, unknown>>

const isRowsFile = (name: unknown): boolean =>
  typeof name === 'string' && /^[^/\\\0]+\.(?:parquet|csv|ndjson)$/.test(name) && name.length <= 200

/** Refuses what a program could not be given, and what it could not hand back. */
export function checkProgram(key: string, options: GivenOptions): void {
  const { output, schema, checks, inputs, env } = options
  if (output !== undefined && !isRowsFile(output))
    throw invalid(
      'bad_output',
      `output of ${key} is ${show(output)}`,
      "Write the name of a file, without a folder, that ends in .parquet, .csv or .ndjson: output: 'rows.csv'.",
    )
  if (schema !== undefined && !isSchema(schema))
    throw invalid('bad_schema', `schema of ${key} is not a schema`, 'Write schema: z.object({ id: z.string() }).')
  if (output !== undefined && schema === undefined)
    throw invalid(
      'bad_schema',
      `command ${key} hands rows back and has no schema`,
      'Write schema: z.object({ id: z.string() }).',
    )
  if (schema !== undefined && output === undefined)
    throw invalid(
      'bad_output',
      `command ${key} has a schema and no output`,
      "Name the file that it writes: output: 'rows.csv'.",
    )
  if (checks !== undefined && schema === undefined)
    throw invalid(
      'bad_check',
      `command ${key} has checks and keeps its own data, which they could not see`,
      'Report the checks over Dagster Pipes, or hand rows back: give it output and schema.',
    )
  checkNoNul(key, options)
  checkInputNames(key, options)
  checkDimensions(key, options)
  const own = Object.values(inputs ?? {}).some(isOwn)
  if (own && schema === undefined)
    throw invalid(
      'no_value',
      `command ${key} takes its own past and keeps its own data`,
      'Read the data in the program, or hand rows back: give it output and schema.',
    )
  const taken = Object.keys(typeof env === 'object' && env !== null ? env : {}).find(isProgramVariable)
  if (taken !== undefined)
    throw invalid('bad_env', `env of ${key} has ${taken}, which Servo sets itself`, 'Give the variable another name.')
}

/** The system ends each word, path and variable at a NUL. */
function checkNoNul(key: string, { run, cwd, files, env }: GivenOptions): void {
  for (const [option, value] of Object.entries({ run, cwd, files, env })) {
    const texts = typeof value === 'object' && value !== null ? Object.entries(value).flat() : [value]
    if (texts.some((text) => typeof text === 'string' && text.includes('\0')))
      throw invalid(
        'bad_command',
        `\`${option}\` of ${key} contains a NUL character, which no program can be given`,
        'Remove the character.',
      )
  }
}

/** Each input has a variable of its own. */
function checkInputNames(key: string, { inputs }: GivenOptions): void {
  const taken = new Map<string, string>()
  for (const name of Object.keys(inputs ?? {})) {
    const variable = inputVariable(name)
    if (!/^[A-Za-z][A-Za-z0-9_]*$/.test(name))
      throw invalid(
        'bad_input_name',
        `command ${key} has an input called ${show(name)}`,
        'Use letters, digits and "_": the name becomes part of a variable, such as SERVO_INPUT_ORDERS.',
      )
    const other = taken.get(variable)
    if (other !== undefined)
      throw invalid('bad_input_name', `inputs ${other} and ${name} of ${key} would both be ${variable}`, 'Rename one of them.')
    taken.set(variable, name)
  }
}

/** Each dimension has a variable of its own, too. */
function checkDimensions(key: string, { partitions }: GivenOptions): void {
  const names = isPartitions(partitions) ? dimensionNames(partitions.data) : []
  const taken = new Map<string, string>()
  for (const name of names) {
    const variable = dimensionVariable(name)
    const other = taken.get(variable)
    if (other !== undefined)
      throw invalid(
        'bad_input_name',
        `dimensions ${other} and ${name} of ${key} would both be ${variable}`,
        'Rename one of them.',
      )
    taken.set(variable, name)
  }
}
