import type { InputRef, StoredValue } from '../../contract/dispatch.ts'
import { type AnyAsset, hasRows } from '../any-asset.ts'
import { columnsOf } from '../columns.ts'
import { declarationOf } from '../declaration.ts'
import type { Io } from '../declare/io.ts'
import type { ValueStore } from '../declare/values.ts'
import { invalid } from '../invalid.ts'
import { isOwn, type Upstream, upstream } from '../partitions/mapped.ts'
import { valuesOfDimensions } from '../partitions/partition-key.ts'
import type { StandardSchemaV1 } from '../standard-schema.ts'

interface InputSource {
  readonly inputs: Readonly<Record<string, InputRef>>
  readonly store: ValueStore
}

/** The values of the inputs, by the names that the body uses. Tables are opened; their rows are read on demand. */
export async function loadInputs(
  self: AnyAsset,
  declared: Readonly<Record<string, Upstream>>,
  { inputs, store }: InputSource,
): Promise<Record<string, unknown>> {
  const entries = Object.entries(declared).map(async ([name, input]) => {
    const ref = inputs[name]
    if (ref === undefined)
      throw invalid(
        'input_missing',
        `${self.key} is missing its input ${name}`,
        `Pass ${upstream(input, self).asset.key} as ${name}.`,
      )
    return [name, await loadInput(input, self, ref, store)]
  })
  return Object.fromEntries(await Promise.all(entries))
}

async function loadInput(input: Upstream, self: AnyAsset, ref: InputRef, store: ValueStore): Promise<unknown> {
  const { asset, mapping, many = ref.many } = upstream(input, self)
  // Before the first window there is none.
  if (isOwn(input) && ref.values.length === 0) return undefined
  const { schema, io } = (declarationOf(asset)?.options ?? {}) as { schema?: StandardSchemaV1; io?: Io<unknown> }
  if (hasRows(asset)) return store.openTable(ref, schema && columnsOf(schema))
  const read = async (value: StoredValue): Promise<unknown> => {
    if (!value.path && !value.value) {
      const whose = value.partition_key === '' ? asset.key : `${asset.key}[${value.partition_key}]`
      throw invalid(
        'no_value',
        `${whose} has no value to load: it returned nothing, or was materialized outside Servo and only reported`,
        `Run ${asset.key}, or list it in deps instead of inputs and read its data in the body.`,
      )
    }
    return io === undefined ? store.readJson(value) : io.read(await store.readBytes(value))
  }
  if (many) {
    const dimension = mapping?.type === 'all' ? mapping.dimension : undefined
    const keyOf = (text: string): string => (dimension === undefined ? text : (valuesOfDimensions(text)[dimension] ?? text))
    return new Map(await Promise.all(ref.values.map(async (value) => [keyOf(value.partition_key), await read(value)] as const)))
  }
  const [value] = ref.values
  if (value === undefined)
    throw invalid('input_missing', `${asset.key} has no materialization to load`, `Materialize ${asset.key} first.`)
  return read(value)
}
