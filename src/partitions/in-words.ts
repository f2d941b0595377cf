import { counted } from '../lib/text/counted.ts'
import { type DimensionDefinition, dimensionsOf, isTime, type PartitionDefinition } from './definition.ts'
import type { PartitionMapping, SimpleMapping } from './mappings/mapping.ts'

/** As many keys as one reads in passing. */
const SHOWN_KEYS = 4

/** The partitions of an asset in words: `daily from 2025-01-01`. */
export function partitionsInWords(definition: PartitionDefinition): string {
  if (definition.type !== 'multi') return dimensionInWords(definition)
  return dimensionsOf(definition)
    .map(([name, dimension]) => `${name}: ${dimensionInWords(dimension)}`)
    .join(' × ')
}

function dimensionInWords(definition: DimensionDefinition): string {
  if (definition.type === 'keys') return `keys [${someOf(definition.keys)}]`
  if (definition.type === 'dynamic') return `dynamic ${definition.name}`
  if (!isTime(definition)) return (definition as { type: string }).type
  const { type, start, end, timezone, every, cron, exclusions, end_offset } = definition
  const unit = type === 'cron' ? `cron ${cron}` : type === 'minutely' && every && every > 1 ? `every ${every} minutes` : type
  return [
    `${unit} from ${momentInWords(start)}`,
    end ? `until ${momentInWords(end)}` : '',
    timezone === 'UTC' ? '' : `in ${timezone}`,
    exclusions?.length ? `without ${someOf(exclusions)}` : '',
    end_offset ? `${end_offset > 0 ? '+' : ''}${end_offset} windows` : '',
  ]
    .filter(Boolean)
    .join(' ')
}

const momentInWords = (moment: string | number): string =>
  typeof moment === 'string' ? moment : new Date(moment).toISOString()

function someOf(keys: readonly string[]): string {
  const more = keys.length - SHOWN_KEYS
  return keys.slice(0, SHOWN_KEYS).join(', ') + (more > 0 ? ` and ${more} more` : '')
}

/** A mapping in words: `the window before`. */
export function mappingInWords(mapping: PartitionMapping): string {
  if (mapping.type === 'dimension') return `${mapping.dimension}: ${ownWords(mapping.mapping)}, the rest whole`
  if (mapping.type !== 'multi') return simpleInWords(mapping)
  const parts = Object.entries(mapping.dimensions).map(([above, { dimension, mapping: own }]) =>
    above === dimension ? `${above}: ${ownWords(own)}` : `${above}: ${ownWords(own)} of ${dimension}`,
  )
  return parts.length === 0 ? 'all partitions' : parts.join('; ')
}

/** Without a mapping of its own a dimension is taken as its kind suggests. */
const ownWords = (mapping: SimpleMapping | null | undefined): string =>
  mapping ? simpleInWords(mapping) : 'what belongs together'

function simpleInWords(mapping: SimpleMapping): string {
  switch (mapping.type) {
    case 'identity':
      return 'the same partition'
    case 'all':
      return 'all partitions'
    case 'last':
      return 'the last partition'
    case 'specific':
      return someOf(mapping.keys)
    case 'static':
      return `by a table of ${counted(Object.keys(mapping.keys).length, 'key')}`
    case 'time_window':
      return windowsInWords(mapping.start_offset, mapping.end_offset)
  }
}

function windowsInWords(start: number, end: number): string {
  if (start === 0 && end === 0) return 'the windows that overlap'
  if (start !== end) return `the windows from ${signedNumber(start)} to ${signedNumber(end)}`
  if (start === -1) return 'the window before'
  return start < 0 ? `the window ${-start} before` : `the window ${start} after`
}

const signedNumber = (offset: number): string => (offset > 0 ? `+${offset}` : String(offset))
