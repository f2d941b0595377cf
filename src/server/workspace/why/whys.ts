import type { ConflictPage, ConflictQuery, ReasonQuery, WhyApi } from '../../../api/automation/why-contract.ts'
import type { RunDetail } from '../../../api/run-contract.ts'
import type { StatusApi } from '../../../api/status-contract.ts'
import { automationState, EVERYTHING } from '../../../domain/automation/automation-state.table.ts'
import type { BackfillRow } from '../../../domain/backfills/backfills.table.ts'
import type { ScheduleRow } from '../../../domain/schedules/schedule-definitions.table.ts'
import type { SensorRow } from '../../../domain/sensors/sensor-definitions.table.ts'
import { reason, type WhyAnswer, type WhyKind } from '../../../domain/why/reasons.ts'
import { type FailedChunk, whyBackfill } from '../../../domain/why/why-backfill.ts'
import { whyRun } from '../../../domain/why/why-run.ts'
import { isServoError, ServoError } from '../../../lib/error.ts'
import type { FoundBackfill } from '../backfills/backfill-reader.ts'
import type { Knowledge } from '../knowledge.ts'
import { whyOfAsset } from './asset-why.ts'
import { listConflicts } from './conflicts.ts'
import { originOfRun } from './origins.ts'
import { whyOfSchedule } from './schedule-why.ts'
import { whyOfSensor } from './sensor-why.ts'
import { waitingIn } from './waiting.ts'

/** What else is asked for an answer. */
export interface WhySources {
  readonly statuses: StatusApi
  /** The schedule of this id or name, which must exist. */
  readonly schedule: (idOrName: string) => Readonly<ScheduleRow>
  /** The sensor of this id or name, which must exist. */
  readonly sensor: (idOrName: string) => Readonly<SensorRow>
  /** When this process last polled a sensor. */
  readonly polledAt: (sensorId: string) => number | undefined
  /** The variables of which a webhook needs one, and has none. */
  readonly missingSecrets: (sensor: Readonly<SensorRow>) => readonly string[]
  readonly run: (idOrStart: string) => Promise<RunDetail>
  /** The backfill of this id, or of the only one that begins so. */
  readonly backfill: (id: string) => Promise<FoundBackfill>
  /** The runs of its first chunks that failed. */
  readonly failedChunks: (backfillId: string) => Promise<readonly (string | null)[]>
  /** Whether this server lets schedules tick; undefined where no server answers. */
  readonly isOn?: boolean | undefined
  /** Why no code of the project can be evaluated here. */
  readonly outage: () => string | undefined
}

/** Answers why something ran, or did not. */
export class Whys implements WhyApi {
  readonly #known: Knowledge
  readonly #sources: WhySources

  constructor(known: Knowledge, sources: WhySources) {
    this.#known = known
    this.#sources = sources
  }

  async why(kind: WhyKind, name: string, query: ReasonQuery): Promise<WhyAnswer> {
    refuseOthers(kind, query)
    const known = this.#known
    switch (kind) {
      case 'schedule':
        return await whyOfSchedule(known, this.#sources.schedule(name), { ...this.#sources, at: query.at })
      case 'sensor':
        return await whyOfSensor(known, this.#sources.sensor(name), query.message, this.#sources)
      case 'backfill': {
        const { backfill, assets } = await this.#sources.backfill(name)
        const everything = known.rows().hot(automationState).get(EVERYTHING)
        const failure = backfill.failed_chunks === 0 ? undefined : await this.#failureIn(backfill)
        return whyBackfill(backfill, assets, failure, { isOn: this.#sources.isOn, everything })
      }
      case 'run':
        return await this.#run(name)
      case 'asset': {
        const ask = (of: 'schedule' | 'sensor', id: string) => this.why(of, id, {})
        return await whyOfAsset(known, name, query.partition, { ...this.#sources, ask })
      }
    }
  }

  conflicts(query: ConflictQuery): Promise<ConflictPage> {
    return listConflicts(this.#known, query)
  }

  /** Why the first run of a backfill failed that did, unless that is gone. */
  async #failureIn({ backfill_id }: Readonly<BackfillRow>): Promise<FailedChunk | undefined> {
    const [run_id] = await this.#sources.failedChunks(backfill_id)
    if (run_id == null) return undefined
    try {
      const { run, tasks } = await this.#sources.run(run_id)
      const failed = tasks.find(({ state }) => state === 'FAILED')
      return { run_id, task_key: failed?.task_key ?? null, error: failed?.error_message ?? run.error }
    } catch (error) {
      if (isServoError(error, 'not_found')) return undefined
      throw error
    }
  }

  async #run(idOrStart: string): Promise<WhyAnswer> {
    const { run, tasks } = await this.#sources.run(idOrStart)
    const { run_id } = run
    const origin = (await originOfRun(this.#known, run_id)) ?? reason('asked_long_ago', { run_id })
    return whyRun({ run, tasks, origin, waiting: waitingIn(this.#known.rows(), run_id) })
  }
}

const QUERIES = { schedule: 'at', sensor: 'message', backfill: undefined, run: undefined, asset: 'partition' } as const

/** A question that would be answered as if a part of it had not been asked is refused. */
function refuseOthers(kind: WhyKind, query: ReasonQuery): void {
  const own = QUERIES[kind]
  const names = ['at', 'message', 'partition'] as const
  const other = names.find((name) => name !== own && query[name] !== undefined)
  if (other === undefined) return
  const of = { at: 'a schedule', message: 'a sensor', partition: 'an asset' }[other]
  throw new ServoError('invalid', 'bad_query', `${other} is for ${of}, not for a ${kind}`, {
    hint: own === undefined ? 'Remove it.' : `Remove it, or pass ${own}.`,
    facts: { field: other },
  })
}
