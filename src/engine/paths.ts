import { ServoError } from '../lib/error.ts'
import { isUtcDay, utcDay } from '../lib/time.ts'
import { isUlid, ulidTime } from '../lib/ulid.ts'

/** Whose facts these are. Both names become part of every path; `Paths` checks them, so every component does. */
export interface Scope {
  readonly tenant_id: string
  readonly workspace_id: string
}

const SCOPE_NAME = /^[a-z0-9][a-z0-9_-]{0,62}$/

export function checkScope(scope: Scope): Scope {
  for (const field of ['tenant_id', 'workspace_id'] as const) {
    const value: unknown = scope[field]
    if (typeof value !== 'string' || !SCOPE_NAME.test(value)) {
      throw new ServoError('invalid', 'bad_scope', `${field} ${JSON.stringify(String(value).slice(0, 80))} is not a name`, {
        hint: 'Use 1 to 63 lower-case letters, digits, - and _, beginning with a letter or digit.',
        facts: { field },
      })
    }
  }
  return scope
}

/** Wide enough for a publish every millisecond for 31 years; paths sort like the numbers. */
const NUMBER_WIDTH = 12
const padNumber = (number: number): string => String(number).padStart(NUMBER_WIDTH, '0')

/** A day of a million runs has some hundred archives. */
const PART_WIDTH = 4

/** The folders of a table's files. Sorted files are in `runs`. */
export type Layer = 'base' | 'l0' | 'removed' | 'runs' | 'history'

/** Every path Servo uses, in one place. */
export class Paths {
  readonly root: string
  readonly ledger: string
  /** Where the segments of days that no start needs are packed. */
  readonly archives: string
  readonly manifests: string
  readonly boundaries: string
  readonly state: string
  /** A copy of the newest manifest, for people and DuckDB; Servo itself never trusts it. */
  readonly manifestCopy: string
  readonly attachScript: string
  /** The API tokens of the workspace, without their secrets. */
  readonly tokens: string
  /** Answers to requests that were made under an id, by period. */
  readonly requests: string

  constructor(scope: Scope) {
    checkScope(scope)
    this.root = `tenant=${scope.tenant_id}/workspace=${scope.workspace_id}/`
    this.ledger = `${this.root}ledger/orchestration/`
    this.archives = `${this.root}ledger/orchestration.archives/`
    this.manifests = `${this.root}manifests/orchestration/`
    this.boundaries = `${this.root}manifests/orchestration.boundary/`
    this.state = `${this.root}state/orchestration/`
    this.manifestCopy = `${this.root}manifests/orchestration.manifest.json`
    this.attachScript = `${this.root}attach.sql`
    this.tokens = `${this.root}tokens/`
    this.requests = `${this.root}requests/`
  }

  segment(ulid: string): string {
    return `${this.ledger}${utcDay(ulidTime(ulid))}/${ulid}.json`
  }

  /** The folder of the segments of one day, `2025-01-15`. */
  day(day: string): string {
    return `${this.ledger}${day}/`
  }

  /** One of the archives of a day, counted from 1. */
  archive(day: string, part: number): string {
    return `${this.archives}${day}-${String(part).padStart(PART_WIDTH, '0')}.jsonl.zst`
  }

  manifest(number: number): string {
    return `${this.manifests}${padNumber(number)}.json`
  }

  boundary(number: number): string {
    return `${this.boundaries}${padNumber(number)}.json`
  }

  table(table: string): string {
    return `${this.state}${table}/`
  }

  file(table: string, layer: Layer, publish: number, epoch: number): string {
    return `${this.table(table)}${layer}/${padNumber(publish)}-${epoch}.parquet`
  }

  /** History is partitioned by the day on which it was sealed. A file merged from others carries the level too. Those of earlier versions have none. */
  historyFile(table: string, day: string, publish: number, epoch: number, level?: number): string {
    const name = `${padNumber(publish)}-${epoch}${level === undefined ? '' : `-${level}`}`
    return `${this.table(table)}history/${day}/${name}.parquet`
  }

  /** A sorted file merged from others carries the level too: one publish may write several. */
  sortedFile(table: string, publish: number, epoch: number, level: number): string {
    return `${this.table(table)}runs/${padNumber(publish)}-${epoch}-${level}.parquet`
  }

  /** The output of one attempt, in chunks. */
  attemptLogs(runId: string, attemptId: string): string {
    return `${this.root}logs/${runId}/${attemptId}/`
  }

  /** Named by the time of the attempt's first output: an attempt that is begun again after a crash does not overwrite the first. */
  attemptLog(runId: string, attemptId: string, sinceMs: number, chunk: number): string {
    return `${this.attemptLogs(runId, attemptId)}${padNumber(sinceMs)}-${padNumber(chunk)}.ndjson`
  }

  order(publish: number, epoch: number): string {
    return `${this.state}_order/${padNumber(publish)}-${epoch}.json`
  }

  page(list: string, publish: number, epoch: number, level: number): string {
    return `${this.state}_${list}_pages/${padNumber(publish)}-${epoch}-${level}.json`
  }
}

/** The ULID of a segment's path; undefined for any other path, such as one outside the folder of its day. */
export function segmentUlid(path: string): string | undefined {
  const [day, name] = path.split('/').slice(-2)
  if (name === undefined || !name.endsWith('.json')) return undefined
  const ulid = name.slice(0, -'.json'.length)
  return isUlid(ulid) && day === utcDay(ulidTime(ulid)) ? ulid : undefined
}

const ARCHIVE = new RegExp(`/(\\d{4}-\\d{2}-\\d{2})-(\\d{${PART_WIDTH},})\\.jsonl\\.zst$`)

/** The day and the part of an archive's path; undefined for any other path. */
export function archiveAt(path: string): { readonly day: string; readonly part: number } | undefined {
  const [, day, part] = ARCHIVE.exec(path) ?? []
  return day === undefined || !isUtcDay(day) ? undefined : { day, part: Number(part) }
}

/** The number at the start of a numbered file's name; NaN for a file that is not ours. */
export function numberOf(path: string): number {
  const name = path.slice(path.lastIndexOf('/') + 1)
  return NUMBERED.test(name) ? Number(name.slice(0, NUMBER_WIDTH)) : Number.NaN
}

const NUMBERED = new RegExp(`^\\d{${NUMBER_WIDTH}}(?:-\\d+){0,2}\\.(?:json|parquet)$`)
