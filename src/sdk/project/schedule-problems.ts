import type { ProjectManifestInput, ProjectProblem } from '../../contract/project-manifest.ts'
import type { ScheduleDefinitionInput } from '../../contract/schedule.ts'
import { isServoError } from '../../lib/error.ts'
import { isTime, type PartitionDefinition } from '../../partitions/definition.ts'
import { readKey } from '../../partitions/key.ts'
import { type PartitionSet, partitionSet } from '../../partitions/partition-set.ts'

/** Schedules that could never run what they are meant to: reported when the project is loaded, and not by their first tick. */
export function scheduleProblems({ assets, schedules = [] }: ProjectManifestInput): ProjectProblem[] {
  const byKey = new Map(assets.map((asset) => [asset.asset_key, asset]))
  return schedules.flatMap((schedule) => {
    const selected = schedule.asset_selection.map((key) => byKey.get(key))
    // An asset that is missing is reported as such.
    if (selected.includes(undefined)) return []
    const definitions = selected.flatMap((asset) => (asset?.partitions ? [asset.partitions as PartitionDefinition] : []))
    return [...needlessOffset(schedule, definitions), ...unknownPartitions(schedule, definitions)]
  })
}

const problemOf = ({ file, line }: ScheduleDefinitionInput, code: string, message: string, hint: string): ProjectProblem => ({
  ...{ code, message, hint },
  ...{ file, line },
})

function needlessOffset(schedule: ScheduleDefinitionInput, definitions: readonly PartitionDefinition[]): ProjectProblem[] {
  if (!schedule.partition_offset || definitions.some(hasWindows)) return []
  const message = `schedule ${schedule.name} has an offset, but selects no asset with time partitions`
  return [problemOf(schedule, 'bad_schedule', message, 'Remove offset, or select an asset with partitions such as daily().')]
}

const hasWindows = (definition: PartitionDefinition): boolean =>
  isTime(definition) || ('dimensions' in definition && Object.values(definition.dimensions).some(hasWindows))

function unknownPartitions(schedule: ScheduleDefinitionInput, definitions: readonly PartitionDefinition[]): ProjectProblem[] {
  // Keys of dynamic sets come later. Of several assets, one may have a partition and the others those related to it.
  const sets = definitions.map((definition) => partitionSet(definition, { nowMs: 0, dynamicKeys: () => [] }))
  if (sets.length === 0 && schedule.partition_selection) {
    const message = `schedule ${schedule.name} names partitions, but selects no asset with partitions`
    return [problemOf(schedule, 'bad_partition', message, 'Remove partitions, or select an asset that has them.')]
  }
  return (schedule.partition_selection ?? [])
    .filter((asked) => !sets.some((set) => mayHave(set, asked)))
    .map((asked) => {
      const message = `schedule ${schedule.name} runs the partition ${asked}, which none of its assets can have`
      const hint =
        'Use a key, a range such as 2025-01-01..2025-01-31, or *. Without partitions, it runs the window that just closed.'
      return problemOf(schedule, 'bad_partition', message, hint)
    })
}

/** Whether partitions as people write them exist, or may exist one day. */
function mayHave(set: PartitionSet, asked: string): boolean {
  if (asked === '*') return true
  if (set.dimensions.length > 0)
    return Object.entries(valuesIn(asked)).every(([name, value]) => {
      const dimension = set.dimensions.find((one) => one.name === name)
      return dimension !== undefined && mayHave(dimension.set, value)
    })
  if (isPossible(set, asked)) return true
  const [, from, to] = /^(.*?)\.\.(.*)$/s.exec(asked) ?? []
  return from !== undefined && to !== undefined && [from, to].every((end) => end === '' || isPossible(set, end))
}

function isPossible(set: PartitionSet, key: string): boolean {
  if (set.definition?.type === 'dynamic') return true
  const problem = set.problemOf(key)
  return problem === undefined || problem.code === 'not_closed'
}

/** The value of each dimension; one without a name if it cannot be read, which no set has. */
function valuesIn(asked: string): Readonly<Record<string, string>> {
  try {
    return readKey(asked)
  } catch (error) {
    if (isServoError(error)) return { '': asked }
    throw error
  }
}
