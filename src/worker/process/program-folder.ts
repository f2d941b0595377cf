import { mkdir, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { DispatchEnvelope } from '../../contract/dispatch.ts'
import type { AnyAsset } from '../../sdk/any-asset.ts'
import { optionsOf } from '../../sdk/declaration.ts'
import { dimensionVariable, inputVariable, isProgramVariable } from '../../sdk/declare/command-check.ts'
import { invalid } from '../../sdk/invalid.ts'
import { type Upstream, upstream } from '../../sdk/partitions/mapped.ts'
import type { AnyPartitions } from '../../sdk/partitions/partitions.ts'
import { makeScratchFolder } from '../scratch-folder.ts'
import { type GivenInput, givenInput, isSeveral } from '../values/input-files.ts'
import type { ValueStorage } from '../values/stored-values.ts'
import type { PipesContext } from './pipes.ts'

/** A folder of one attempt: lists of its inputs, and the folder in which its program may write. Nothing of it outlives the attempt. */
export interface ProgramFolder {
  /** What the program may write into. */
  readonly output: string
  readonly inputs: Readonly<Record<string, GivenInput>>
  /** Paths of the inputs and of this folder. */
  readonly variables: Readonly<Record<string, string>>
  remove(): Promise<void>
}

/** No input has this name: names begin with a letter. */
const ALL_INPUTS = '_inputs'

/** Every attempt gets a folder of its own, so that one that was given up and still writes harms no other. */
export async function openProgramFolder(
  asset: AnyAsset,
  refs: DispatchEnvelope['payload']['inputs'],
  storage: ValueStorage,
): Promise<ProgramFolder> {
  const folder = await makeScratchFolder('attempt')
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true })
  try {
    const output = path.join(folder, 'output')
    await mkdir(output)
    const inputs: Record<string, GivenInput> = {}
    const variables: Record<string, string> = { SERVO_OUTPUT: output }
    const { inputs: declared = {} } = optionsOf<{ inputs?: Readonly<Record<string, Upstream>> }>(asset)
    for (const [name, input] of Object.entries(declared)) {
      const { asset: above, many } = upstream(input, asset)
      const found = refs[name] ?? throwNoInput(asset.key, name, above.key)
      const ref = { ...found, many: many ?? found.many }
      const given = await givenInput(storage, { ref, hasDimensions: hasDimensions(above), copies: path.join(folder, name) })
      inputs[name] = given
      variables[inputVariable(name)] = isSeveral(ref) ? await listed(folder, name, given) : (given.path ?? '')
    }
    variables['SERVO_INPUTS'] = await listed(folder, ALL_INPUTS, inputs)
    return { output, inputs, variables, remove }
  } catch (error) {
    await remove()
    throw error
  }
}

const hasDimensions = (asset: AnyAsset): boolean =>
  optionsOf<{ partitions?: AnyPartitions }>(asset).partitions?.data.type === 'multi'

async function listed(folder: string, name: string, content: object): Promise<string> {
  const file = path.join(folder, `${name}.json`)
  await writeFile(file, JSON.stringify(content))
  return file
}

function throwNoInput(key: string, name: string, upstreamKey: string): never {
  throw invalid('input_missing', `${key} was given no input ${name}`, `Give it ${upstreamKey} as ${name}.`)
}

/** The attempt in variables, for programs that do not speak Pipes. */
export function attemptVariables(
  { asset_key, partition, run_id, attempt, traceparent }: DispatchEnvelope,
  window: PipesContext['partition_time_window'] | undefined,
): Record<string, string> {
  const dimensions = Object.entries(partition?.values ?? {}).map(([name, value]) => [dimensionVariable(name), value])
  return {
    SERVO_ASSET: asset_key,
    SERVO_RUN_ID: run_id,
    SERVO_ATTEMPT: String(attempt),
    // By this name programs with OpenTelemetry continue a trace.
    ...(traceparent && { TRACEPARENT: traceparent }),
    ...(partition && { SERVO_PARTITION: partition.key, ...Object.fromEntries(dimensions) }),
    ...(window && { SERVO_WINDOW_START: window.start, SERVO_WINDOW_END: window.end }),
  }
}

/** The environment of this worker. A worker that a program of another attempt started has inherited variables of that attempt. */
export function inheritedVariables(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  if (environment['SERVO_ATTEMPT'] === undefined) return environment
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !isProgramVariable(name)))
}
