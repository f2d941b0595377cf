import { constants } from 'node:os'
import { checkStateFolder } from '../../adapters/fs/state-folder.ts'
import type { AcceptedRun, RunsApi } from '../../api/run-contract.ts'
import type { ServoClient } from '../../client/client.ts'
import { isServoError, ServoError } from '../../lib/error.ts'
import type { Orchestrator } from '../../server/leader/orchestrator.ts'
import type { LocalServerOptions } from '../../server/machine/local-server.ts'
import { ask, isNotLoaded } from '../ask-and-tell.ts'
import { ASK_FOR_SIGN_MS, nextLeader, withLeader } from '../find-leader.ts'
import { concurrencyFlag, labelsFlag, wholeNumber } from '../flags.ts'
import { colours, complain, errorColours, note, print, printJson, warn, workUnread } from '../output.ts'
import { componentsOf, currentTrace, currentUser, findProject, servoDirOf } from '../project.ts'
import { remoteServer } from '../remote/remote-server.ts'
import { printProblems } from '../show-problems.ts'
import { INTERRUPTED, shortId } from '../show-run.ts'
import { printPreview } from '../watch/show-preview.ts'
import { type Watchable, WatchedRun, type WatchFlags } from '../watch/watched-run.ts'

export interface RequestFlags extends WatchFlags {
  detach?: boolean
}

export interface RunFlags extends RequestFlags {
  partition?: string[]
  stale?: boolean
  missing?: boolean
  failed?: boolean
  dryRun?: boolean
  key?: string
  label?: string[]
  priority?: string
}

/** Requests a run and waits for its end: from the leader or, without one, from this process, which then leads. */
export async function runAssets(selection: string[], flags: RunFlags): Promise<void> {
  const only = (['stale', 'missing', 'failed'] as const).filter((name) => flags[name])
  if (selection.length === 0 && only.length === 0) throw nothingSelected()
  const work = {
    ...(selection.length > 0 && { select: selection }),
    ...(flags.partition !== undefined && { partitions: flags.partition }),
    ...(only.length > 0 && { only }),
  }
  if (flags.dryRun) {
    const preview = await ask(flags, ({ runs }) => runs.preview(work), { ofNext: true })
    if (flags.json) printJson(preview)
    else printPreview(preview)
    return
  }
  const body = {
    ...work,
    ...(flags.key !== undefined && { key: flags.key }),
    ...(flags.label !== undefined && { labels: labelsFlag(flags.label) }),
    ...(flags.priority !== undefined && { priority: wholeNumber('--priority', flags.priority, { min: -1_000, max: 1_000 }) }),
  }
  try {
    const request: Request = (runs, request_id) => runs.request({ ...body, request_id }, currentUser(), currentTrace())
    await requestRun(flags, request)
  } catch (error) {
    if (!isServoError(error, 'conflict') || error.code !== 'nothing_to_do') throw error
    if (flags.json) printJson({ run_id: null, nothing_to_do: error.message })
    else print(error.message)
  }
}

const nothingSelected = (): ServoError =>
  new ServoError('invalid', 'selection_missing', 'no assets selected', {
    hint: "Name assets: servo run mart/revenue, or servo run '*' for all. Or run what is stale: servo run --stale",
  })

type Request = (runs: RunsApi, request_id: string) => Promise<AcceptedRun>

/** Hands a request for a run to the leader and follows the run; without a leader, leads until the run is over. */
export async function requestRun(flags: RequestFlags, asked: Request): Promise<void> {
  workUnread()
  const remote = remoteServer(flags)
  if (remote !== undefined) {
    await requestRemotely(remote, flags, asked)
    return
  }
  const projectDir = findProject(flags)
  const size = concurrencyFlag(flags.concurrency)
  const components = await componentsOf(projectDir)
  // Every repetition has the same id, so that a request whose answer got lost can be sent again.
  const id = components.ulid()
  const request = (runs: RunsApi): Promise<AcceptedRun> => accepting(asked(runs, id))
  const then: Interrupted = { next: () => nextLeader(components), read: (shown) => shown.read(components) }
  if (!checkStateFolder(servoDirOf(projectDir))) {
    if (flags.detach) throw nobodyToGoOn()
    const { tryFirstRequest } = await import('../../server/machine/first-request.ts')
    const problems = await tryFirstRequest(projectDir, components, (runs) => asked(runs, id))
    if (problems.length > 0) {
      printProblems(problems)
      process.exitCode = 2
      return
    }
  }
  for (let shown: WatchedRun | undefined; ; ) {
    const accepted = await withLeader(
      components,
      async (leader) => {
        try {
          return await request(leader.runs)
        } catch (error) {
          // What is not found may be declared in a project that cannot be loaded.
          if (isServoError(error, 'invalid') && error.code === 'bad_selection') await isNotLoaded(flags, leader, 'answers')
          throw error
        }
      },
      async (lease, name) => {
        if (flags.detach) {
          await lease.release()
          throw nobodyToGoOn()
        }
        const here = { projectDir, components, lease, instance: name, ...size }
        shown = await runHere(here, flags, request, shown)
      },
      { isRepeatable: true },
    )
    if ('leader' in accepted) {
      const { leader, answer } = accepted
      if (flags.detach) printAccepted(answer, flags)
      else await watchRun(leader, shown ?? new WatchedRun(answer, flags, components), flags, then)
      return
    }
    if (shown === undefined) return
    if (shown.isOver) {
      // The run may have ended while this process gave way.
      shown.report()
      return
    }
    note(`${shortId(shown.runId)} continues in the server that takes over`)
    const leader = await nextLeader(components, ASK_FOR_SIGN_MS)
    if (leader !== undefined) {
      await watchRun(leader, shown, flags, then)
      return
    }
    // The server that wanted to lead has gone or is stopped. The next turn challenges it, and finishes the run here.
  }
}

/** What a request leaves out is said. */
async function accepting(requested: Promise<AcceptedRun>): Promise<AcceptedRun> {
  const accepted = await requested
  for (const { asset_key, why } of accepted.left_out) note(`skipping ${asset_key}: ${why}`)
  return accepted
}

/** A server elsewhere that was restarted, or a network that was gone, is back by then. */
const AWAY_MS = 60_000
const ASK_AGAIN_MS = 500

/** The same of a server elsewhere, of which only its address is known: when it is away, it is asked again for a while. */
async function requestRemotely(remote: ServoClient, flags: RequestFlags, asked: Request): Promise<void> {
  const { folderless } = await import('../../server/components.ts')
  const { clock, ulid } = folderless()
  const answer = await accepting(asked(remote.runs, ulid()))
  if (flags.detach) {
    printAccepted(answer, flags)
    return
  }
  const next = async (): Promise<Watchable | undefined> => {
    for (const began = clock.monotonic(); clock.monotonic() - began < AWAY_MS; await clock.sleep(ASK_AGAIN_MS)) {
      const isThere = await remote.runs.get(answer.run_id).then(
        () => true,
        (error: unknown) => {
          if (isServoError(error, 'unavailable')) return false
          throw error
        },
      )
      if (isThere) return remote
    }
    return undefined
  }
  await watchRun(remote, new WatchedRun(answer, flags, { clock }), flags, { next })
}

const nobodyToGoOn = (): ServoError =>
  new ServoError('unavailable', 'no_server', 'no server is running, and --detach needs one', {
    hint: 'Start one with servo dev, or leave --detach out to run the assets here.',
  })

function printAccepted(accepted: AcceptedRun, flags: RequestFlags): void {
  if (flags.json) {
    printJson(accepted)
    return
  }
  const { run_id, created, rerun_of } = accepted
  print(created ? `accepted  ${run_id}` : `already requested  ${run_id}`)
  if (rerun_of !== null) print(colours.dim(`a rerun of ${shortId(rerun_of)}`))
  print(colours.dim(`follow it: servo runs logs -f ${shortId(run_id)}`))
}

/** How to go on with a run whose server went away. */
interface Interrupted {
  /** Who knows of the run now; undefined if nobody does. */
  next(): Promise<Watchable | undefined>
  /** Reads the run where it is recorded, if that is here. */
  read?(shown: WatchedRun): Promise<void>
}

/** Follows a run until it is over, from one server to the next. Leaving does not stop it. */
async function watchRun(leader: Watchable, shown: WatchedRun, flags: WatchFlags, { next, read }: Interrupted): Promise<void> {
  const leave = new AbortController()
  const onSignal = (): void => leave.abort()
  process.once('SIGINT', onSignal)
  try {
    for (let asked: Watchable | undefined = leader; asked !== undefined && !shown.isOver; ) {
      await shown.follow(asked, leave.signal).catch((error: unknown) => {
        if (!isServoError(error, 'unavailable')) throw error
      })
      if (leave.signal.aborted) break
      asked = shown.isOver ? undefined : await next()
    }
    if (!leave.signal.aborted) {
      if (!shown.isOver) await read?.(shown)
      shown.report()
      return
    }
    process.exitCode = 130
    if (flags.json) printJson(shown.last)
    else print(`\n${shortId(shown.runId)} continues on the server; cancel it with: servo runs cancel ${shortId(shown.runId)}`)
  } finally {
    process.off('SIGINT', onSignal)
  }
}

/** Attempts under way get this long to end when a server wants to lead. That server runs longer ones again. */
const HAND_OVER_GRACE_MS = 30_000

type Here = Pick<LocalServerOptions, 'projectDir' | 'components' | 'lease' | 'instance' | 'concurrency'>

/**
 * Leads the project, which has no leader, until the requested runs are over or a server wants to lead. Returns the run
 * that it was started for, over or not; undefined when the project cannot be loaded.
 */
async function runHere(
  here: Here,
  flags: WatchFlags,
  request: (runs: RunsApi) => Promise<AcceptedRun>,
  before: WatchedRun | undefined,
): Promise<WatchedRun | undefined> {
  const { LocalServer } = await import('../../server/machine/local-server.ts')
  const stopped = Promise.withResolvers<never>()
  stopped.promise.catch(() => undefined)
  const wanted = Promise.withResolvers<void>()
  const { server, loaded } = await LocalServer.start({
    ...here,
    port: 0,
    onHandOver: () => wanted.resolve(),
    onTrouble: warn,
    onStopped: (error) => stopped.reject(error),
  })
  try {
    if (!loaded.ok) {
      printProblems(loaded.problems)
      process.exitCode = 2
      return undefined
    }
    const { orchestrator, api } = server
    const accepted = await request(api.runs)
    const { run_id } = accepted
    orchestrator.carry(run_id)
    const shown = before ?? new WatchedRun(accepted, flags, here.components)
    const interrupted = cancelOnSignal(api.runs, run_id)
    const over = shown.follow(api, new AbortController().signal)
    // A process that was replaced while it was stopped ends as if it had given way on request.
    await Promise.race([over, stopped.promise.catch(unlessDeposed), wanted.promise]).finally(interrupted.ignore)
    if (shown.isOver) {
      shown.report()
      process.exitCode = interrupted.exitCode() ?? process.exitCode
      if ((await finishOthers(orchestrator, [stopped.promise.catch(unlessDeposed), wanted.promise])) === 'left') return shown
    }
    // Returns at once when nothing is under way.
    await orchestrator.drain(HAND_OVER_GRACE_MS)
    return shown
  } finally {
    await server.close()
  }
}

/** Waits for runs that other commands have requested from this process. Ctrl-C leaves them to the next server. */
async function finishOthers(orchestrator: Orchestrator, ends: readonly Promise<void>[]): Promise<'left' | undefined> {
  const { carried, others } = orchestrator.unfinished()
  if (others.length > 0) note(`${runsText(others)} unfinished; start a server to continue: servo dev`)
  if (carried.length === 0) return undefined
  const left = Promise.withResolvers<'left'>()
  const leave = (): void => left.resolve('left')
  // The handler is set before the note is printed, because a signal may follow at once.
  process.once('SIGINT', leave)
  process.once('SIGTERM', leave)
  note(`${runsText(carried)} still running here for another command; Ctrl-C leaves the rest to the next server`)
  try {
    return (await Promise.race([orchestrator.idle(), left.promise, ...ends])) ?? undefined
  } finally {
    process.off('SIGINT', leave)
    process.off('SIGTERM', leave)
  }
}

const runsText = ([first = '', ...more]: readonly string[]): string =>
  more.length === 0 ? `${shortId(first)} is` : `${more.length + 1} runs are`

function unlessDeposed(error: unknown): void {
  if (!isServoError(error, 'conflict') || error.code !== 'deposed') throw error
}

/** A disk that is full records no cancellation, and whoever sent a signal waits for the end of the process. */
const RECORD_CANCEL_MS = 10_000

/** Ctrl-C cancels the run and waits for its end; a second one does not wait. */
function cancelOnSignal(runs: RunsApi, runId: string): { ignore: () => void; exitCode: () => number | undefined } {
  let exitCode: number | undefined
  const leave = (code: number): void => {
    complain(`${shortId(runId)} was not cancelled, because nothing can be recorded. It continues when the project starts again`)
    process.exit(code)
  }
  const onSignal = (signal: 'SIGINT' | 'SIGTERM'): void => {
    if (exitCode !== undefined) process.exit(exitCode)
    exitCode = 128 + constants.signals[signal]
    complain(`${errorColours.yellow('cancelling')} ${shortId(runId)}; press Ctrl-C again to exit at once`)
    const givingUp = setTimeout(leave, RECORD_CANCEL_MS, exitCode).unref()
    runs.cancel(runId, currentUser(), INTERRUPTED).then(
      () => clearTimeout(givingUp),
      () => undefined,
    )
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  return {
    ignore() {
      process.off('SIGINT', onSignal)
      process.off('SIGTERM', onSignal)
    },
    exitCode: () => exitCode,
  }
}
