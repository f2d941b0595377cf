import { base32 } from '../../lib/base32.ts'
import { Sha256 } from '../../lib/hash.ts'
import { canonicalJson } from '../../lib/json.ts'
import type { EventDefinition } from '../../model/event.ts'
import { Parts } from '../event-parts.ts'
import type { PlanCreated } from '../tasks/plan-created.event.ts'

export type PlanPart = typeof PlanCreated extends EventDefinition<infer _, infer I> ? I : never
export type PlannedTask = PlanPart['tasks'][number]
type Edges = NonNullable<PlanPart['edges']>[number]
type Piece = { readonly task: PlannedTask } | { readonly edges: Edges }

/** The number of upstream tasks that stand with a task itself, at most 512 bytes each: the task then always fits into an event. */
const WITH_TASK = 500
/** Well below the size of an event: several such pieces fit into one. */
const PIECE_BYTES = 200_000

/** Cuts a plan into parts that fit into events. The id is a hash of the content, so planning twice is planning once. */
export function planParts(run_id: string, graph_version: string, tasks: Iterable<PlannedTask>): PlanPart[] {
  const parts = new Parts<Piece>()
  const content = new Sha256()
  content.update(`${run_id}\n${graph_version}`)
  for (const task of tasks) {
    for (const piece of inPieces(task)) {
      const text = canonicalJson('task' in piece ? piece.task : piece.edges)
      content.update(`\n${text}`)
      parts.add(piece, text, () => `the task ${task.task_key}`)
    }
  }
  const plan_id = `plan_${base32(content.digest(), 26)}`
  return parts.list.map((part, index) => {
    const edges = part.flatMap((piece) => ('edges' in piece ? [piece.edges] : []))
    const whole = part.flatMap((piece) => ('task' in piece ? [piece.task] : []))
    const place = { part: index, parts: parts.list.length }
    return { run_id, plan_id, graph_version, ...place, tasks: whole, ...(edges.length > 0 && { edges }) }
  })
}

/** Cuts the upstream tasks of a task into pieces: there may be a hundred thousand. */
function inPieces(task: PlannedTask): Piece[] {
  const { task_key, depends_on = [] } = task
  if (depends_on.length <= WITH_TASK) return [{ task }]
  const pieces: Piece[] = [{ task: { ...task, depends_on: depends_on.slice(0, WITH_TASK) } }]
  let piece: string[] = []
  let bytes = Number.POSITIVE_INFINITY
  for (const upstream of depends_on.slice(WITH_TASK)) {
    const more = Buffer.byteLength(upstream) + 3
    if (bytes + more > PIECE_BYTES) {
      piece = []
      bytes = 0
      pieces.push({ edges: { task_key, depends_on: piece } })
    }
    piece.push(upstream)
    bytes += more
  }
  return pieces
}
