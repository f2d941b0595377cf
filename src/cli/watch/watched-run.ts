import type { WhyApi } from '../../api/automation/why-contract.ts'
import { followWithLogs, type LogsShown } from '../../api/detail/follow-with-logs.ts'
import type { AcceptedRun, RunEvent, RunsApi, WireRun } from '../../api/run-contract.ts'
import type { WorkspaceApi } from '../../api/workspace-contract.ts'
import { logText } from '../../contract/log-text.ts'
import type { ReasonCode } from '../../domain/why/reasons.ts'
import { isServoError, ServoError } from '../../lib/error.ts'
import { stateMoved } from '../../ports/state-moved.ts'
import type { LocalComponents } from '../../server/components.ts'
import { colours, note, print, printJson } from '../output.ts'
import type { ProjectFlags } from '../project.ts'
import { checksOf, findingLines, printChecks, warningsOf } from '../results/checks.ts'
import { failuresOf, printFailures, type TaskNow } from '../results/failures.ts'
import { localTime, localZone, RunPrinter, shortId, summary, tasksText } from '../show-run.ts'
import { LiveBlock } from './live-block.ts'
import { progressRows } from './progress.ts'

export interface WatchFlags extends ProjectFlags {
  concurrency?: string
  quiet?: boolean
}

/** A run of more tasks has no line for each on a terminal: the counts say the same, and fit on the screen. */
const LINE_PER_TASK = 20
/** A run that takes shorter needs no estimate, and the question costs the server something. */
const ASK_DURATIONS_AFTER_MS = 1_000

/** Most runs begin at once; one that has not by then waits for something. */
const SAY_WAITING_AFTER_MS = 1_000
const WAITS: readonly ReasonCode[] = ['overlap_waits', 'pool_full', 'after_runs', 'task_with_queue', 'no_worker_free']
/** As many reasons as one reads. */
const SHOWN_WAITS = 3

type Accepted = Pick<AcceptedRun, 'run_id' | 'created'>

/** What a run is followed by. */
export type Watchable = Pick<WorkspaceApi, 'runs' | 'whys'>

/** A run as this terminal shows it: every change once, even when the server changes. */
export class WatchedRun {
  last: WireRun | undefined
  readonly runId: string
  /** False if an earlier request with the same key made the run. */
  readonly #created: boolean
  readonly #flags: WatchFlags
  readonly #clock: LocalComponents['clock']
  readonly #printer = new RunPrinter()
  readonly #shownLogs: LogsShown = new Map()
  readonly #tasks = new Map<string, TaskNow>()
  readonly #printed = new Map<string, string>()
  /** Draws how far the run is, on a terminal. */
  readonly #block: LiveBlock | undefined
  #usualMs: Readonly<Record<string, number>> = {}
  #isReported = false
  #saidWhy = false

  constructor(accepted: Accepted, flags: WatchFlags, { clock }: Pick<LocalComponents, 'clock'>) {
    this.runId = accepted.run_id
    this.#created = accepted.created
    this.#flags = flags
    this.#clock = clock
    this.#block = flags.json ? undefined : LiveBlock.on(() => this.#rows())
  }

  get isOver(): boolean {
    return this.last !== undefined && this.last.finished_at !== null
  }

  async follow({ runs, whys }: Watchable, signal: AbortSignal): Promise<void> {
    const isQuiet = this.#flags.quiet || this.#flags.json
    const events = isQuiet ? runs.follow(this.runId, signal) : followWithLogs(runs, this.runId, signal, {}, this.#shownLogs)
    const asking = this.#block && setTimeout(() => void this.#askDurations(runs), ASK_DURATIONS_AFTER_MS)
    const wondering = setTimeout(() => void this.#sayWhyItWaits(whys), SAY_WAITING_AFTER_MS)
    this.#block?.start()
    try {
      for await (const event of events) this.#show(event)
    } finally {
      clearTimeout(asking)
      clearTimeout(wondering)
      this.#block?.stop()
    }
  }

  /** Reads the run from the folder when no server is left. */
  async read(components: LocalComponents): Promise<void> {
    const { readWorkspace } = await import('../../server/workspace/reader.ts')
    const { runs } = await readWorkspace(components)
    const { run, tasks, attempts } = await runs.get(this.runId).catch((error: unknown) => {
      // A run that a server acknowledged is on record, unless the record is gone.
      throw isServoError(error, 'not_found') ? stateMoved(components.servoDir) : error
    })
    this.last = run
    const last = new Map(attempts.map((attempt) => [attempt.task_key, attempt]))
    for (const task of tasks) this.#tasks.set(task.task_key, { task, attempt: last.get(task.task_key) })
  }

  /** Prints the outcome once, and sets the exit code. */
  report(): void {
    if (this.#isReported) return
    const run = this.last
    if (run === undefined || !this.isOver) {
      throw new ServoError('unavailable', 'connection_lost', 'the server stopped before the run ended', {
        hint: 'The run continues once a server starts: servo dev',
      })
    }
    this.#isReported = true
    const { json } = this.#flags
    const tasks = [...this.#tasks.values()]
    if (json)
      printJson({
        ...run,
        created: this.#created,
        failures: failuresOf(tasks),
        checks: checksOf(tasks),
        warnings: warningsOf(tasks),
      })
    else {
      print(summary(run, warningsOf(tasks)))
      printFailures(tasks, shortId(this.runId))
      printChecks(tasks)
    }
    if (run.state === 'SUCCEEDED') return
    process.exitCode = 1
    if (json) return
    const id = shortId(this.runId)
    if (run.state === 'FAILED' && run.tasks_failed > 0) {
      const again = run.tasks_total === 1 ? 'run it again:  ' : 'rerun the rest:'
      print(colours.dim(`  see the logs:    servo runs logs ${id}\n  ${again}  servo runs rerun ${id}`))
    }
  }

  /** The estimate is an addition: without it the run is shown all the same. */
  async #askDurations(runs: RunsApi): Promise<void> {
    this.#usualMs = await runs.durations(this.runId).catch(() => ({}))
  }

  /** Says what a run waits for of which nothing has begun: another run that makes the same, or a pool. */
  async #sayWhyItWaits(whys: WhyApi): Promise<void> {
    const hasBegun = [...this.#tasks.values()].some(({ attempt }) => attempt !== undefined)
    if (hasBegun || this.isOver || this.#saidWhy) return
    this.#saidWhy = true
    const { because } = await whys.why('run', this.runId, {}).catch(() => ({ because: [] }))
    const waits = because.filter(({ code }) => WAITS.includes(code)).slice(0, SHOWN_WAITS)
    if (waits.length === 0) return
    // Most commands never need the words, and start faster without them.
    const { wordsOfReason } = await import('../../domain/why/words.ts')
    for (const reason of waits) note(wordsOfReason(reason, localZone()))
  }

  #rows(): ReturnType<typeof progressRows> {
    if (this.last === undefined || this.isOver) return []
    const progress = { run: this.last, tasks: [...this.#tasks.values()], usualMs: this.#usualMs, printed: this.#printed }
    return progressRows(progress, this.#clock.now())
  }

  #show(event: RunEvent): void {
    const { json, quiet } = this.#flags
    if (event.type === 'run') {
      if (this.last === undefined && !json) this.#begin(event.run)
      this.last = event.run
      return
    }
    if (event.type === 'task') this.#tasks.set(event.task.task_key, event)
    else if (!quiet) this.#remember(event)
    if (!json && !(quiet && event.type === 'log') && this.#hasLine(event)) this.#printer.show(event)
  }

  /** A run that had ended before must not look like one that runs now. */
  #begin(run: WireRun): void {
    const id = colours.bold(shortId(this.runId))
    if (this.#created) print(`${id}  ${tasksText(run.tasks_total)}`)
    else if (run.finished_at === null) print(`${id} is already running under this key: ${tasksText(run.tasks_total)}`)
    else
      print(
        `${id} already ran under this key: ${run.state.toLowerCase()} at ${localTime(run.finished_at)}. Nothing runs again; this is its record`,
      )
  }

  /** Everything has a line of its own, unless the block has it; in a long run only what went wrong has. */
  #hasLine(event: Exclude<RunEvent, { type: 'run' }>): boolean {
    if (this.#block === undefined) return true
    const isShort = (this.last?.tasks_total ?? 0) <= LINE_PER_TASK
    if (event.type === 'log') return isShort
    const { task, attempt } = event
    if (task.state === 'RUNNING') return false
    return isShort || task.state === 'FAILED' || task.state === 'RETRY_WAIT' || findingLines(attempt).length > 0
  }

  #remember({ task_key, entries }: Extract<RunEvent, { type: 'log' }>): void {
    const last = entries.at(-1)
    if (last !== undefined && this.#block !== undefined) this.#printed.set(task_key, lastLine(logText(last)))
  }
}

const lastLine = (text: string): string => text.trimEnd().split('\n').at(-1) ?? ''
