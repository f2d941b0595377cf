import fc from 'fast-check'
import { MINUTE_MS } from '../../lib/time.ts'

/** A history in a few numbers: what fast-check generates and shrinks. `histories.ts` expands it. */
export interface HistoryPlan {
  readonly runs: readonly RequestPlan[]
  readonly schedules: readonly SchedulePlan[]
  readonly sensors: readonly SensorPlan[]
  readonly watchers: readonly WatcherPlan[]
  readonly backfills: readonly BackfillPlan[]
  readonly strays: readonly StrayPlan[]
  /** After how many segments one stops looking; null when everything is over. */
  readonly steps: number | null
  readonly skewsMs: readonly number[]
  readonly choices: readonly number[]
}

export interface AttemptPlan {
  readonly outcome: 'success' | 'retryable' | 'fatal' | 'cancelled'
  /** 0: the queue does not answer, 1: took it, 2: refused it first, 3: took it twice, because it lost it. */
  readonly acknowledged: number
  /** Workers that start it. */
  readonly started: number
  readonly beats: number
  /** Heartbeat alarms set. */
  readonly watched: number
  /** How a worker that was given up as lost comes back, if it does. */
  readonly zombie: 'none' | 'success' | 'failure'
  /** What else happens to the retry alarm: 1 the attempt asked for a later one, 2 a second one fires. */
  readonly alarms: number
}

export interface TaskPlan {
  readonly upstream: readonly number[]
  readonly asset: number
  readonly partition: number | null
  /** How many neighbours it makes besides. */
  readonly range: number
  readonly maxAttempts: number
  readonly attempts: readonly AttemptPlan[]
  readonly deadline: boolean
  /** Whether another run makes its partition when it is ready, and it is skipped. */
  readonly isInTheWay: boolean
}

export interface RunPlan {
  readonly tasks: readonly TaskPlan[]
  readonly parts: number
  /** True if the edges of tasks are in other parts of the plan than the tasks. */
  readonly spread: boolean
  readonly flaw: 'none' | 'a cycle' | 'an unknown upstream' | 'a task twice' | 'a part is missing'
  /** After how many turns it is cancelled. */
  readonly cancelAfter: number | null
  readonly deadline: boolean
  /** Further requests with the same key: for the same work, or (true) for other work. */
  readonly askedAgain: readonly boolean[]
  readonly plannedTwice: boolean
}

export interface RequestPlan {
  readonly by: 'manual' | 'rerun' | 'automation'
  readonly run: RunPlan
}

const scheduleSteps = [
  'tick',
  'skipped',
  'skipped, then triggered',
  'span',
  'manual',
  'defined',
  'declared again',
  'removed',
  'paused',
  'resumed',
  'all paused',
  'all resumed',
  'caught up',
] as const

export interface SchedulePlan {
  readonly steps: readonly {
    readonly kind: (typeof scheduleSteps)[number]
    /** Two controllers record the same tick. */
    readonly twice: boolean
    readonly run: RunPlan
  }[]
}

const sensorSteps = [
  'poll',
  'race',
  'wrong cursor',
  'error',
  'nothing new',
  'polled',
  'push',
  'push that fails first',
  'dead letter',
  'two at once',
  'other body',
  'reset',
  'paused',
  'resumed',
  'defined',
  'declared again',
  'removed',
] as const

export interface SensorPlan {
  readonly steps: readonly { readonly kind: (typeof sensorSteps)[number]; readonly runs: readonly RunPlan[] }[]
}

const watches = ['watch assets', 'watch all assets', 'watch checks', 'watch runs', 'watch runs of'] as const
const watcherSteps = [
  'hear',
  'hear twice',
  'fail',
  'bury',
  'replay',
  'pause',
  'resume',
  'disable',
  'remove',
  'declare again',
  ...watches,
] as const

export interface WatcherPlan {
  readonly first: (typeof watches)[number]
  readonly steps: readonly { readonly kind: (typeof watcherSteps)[number]; readonly runs: readonly RunPlan[] }[]
}

export interface BackfillPlan {
  readonly chunks: readonly RunPlan[]
  /** Which chunks two controllers plan at once. */
  readonly twice: readonly boolean[]
  readonly pauses: number
  readonly cancelAfter: number | null
  readonly ends: boolean
}

export const strayKinds = [
  'unknown type',
  'unknown version',
  'invalid payload',
  'materialization',
  'wipe',
  'partition keys',
  'removal',
  'retention',
  'assets',
  'unknown run',
  'unknown task',
  'attempt that never is',
  'forged attempt id',
  'early dispatch',
  'unrequested alarm',
  'future poll',
  'stale backfill change',
  'backfill settings',
  'impossible chunk',
  'unknown backfill',
  'alert',
  'freshness',
] as const

export interface StrayPlan {
  readonly kind: (typeof strayKinds)[number]
  readonly target: number
  readonly variant: number
  readonly wait: number
}

/** Strays that could do the most harm are more frequent. */
const inTheWay = ['forged attempt id', 'early dispatch', 'attempt that never is'] as const

/** `common` comes first when shrinking, and most of the time anyway. */
const mostly = <T>(common: T, ...rare: T[]): fc.Arbitrary<T> =>
  fc.oneof({ weight: 4, arbitrary: fc.constant(common) }, { weight: 1, arbitrary: fc.constantFrom(common, ...rare) })

const attemptPlan: fc.Arbitrary<AttemptPlan> = fc.record({
  outcome: fc.oneof(
    { weight: 6, arbitrary: fc.constant('success' as const) },
    { weight: 4, arbitrary: fc.constant('retryable' as const) },
    { weight: 2, arbitrary: fc.constant('fatal' as const) },
    { weight: 1, arbitrary: fc.constant('cancelled' as const) },
  ),
  acknowledged: fc.nat({ max: 3 }),
  started: fc.nat({ max: 2 }),
  beats: fc.nat({ max: 2 }),
  watched: fc.nat({ max: 2 }),
  zombie: mostly<AttemptPlan['zombie']>('none', 'success', 'failure'),
  alarms: fc.nat({ max: 2 }),
})

const taskPlan: fc.Arbitrary<TaskPlan> = fc.record({
  upstream: fc.array(fc.nat({ max: 7 }), { maxLength: 3 }),
  asset: fc.nat({ max: 3 }),
  partition: fc.option(fc.nat({ max: 2 })),
  range: mostly(0, 1, 2),
  maxAttempts: fc.integer({ min: 1, max: 3 }),
  attempts: fc.array(attemptPlan, { maxLength: 3 }),
  deadline: mostly(false, true),
  isInTheWay: mostly(false, true),
})

/** A task that has every reason to end badly, below others like it. */
const ominousTask: fc.Arbitrary<TaskPlan> = fc.record({
  upstream: fc.oneof(fc.constant([]), fc.array(fc.nat({ max: 7 }), { minLength: 2, maxLength: 3 })),
  asset: fc.nat({ max: 3 }),
  partition: fc.constant(null),
  range: fc.constant(0),
  maxAttempts: fc.constant(1),
  attempts: fc.tuple(
    fc.record({
      outcome: fc.constantFrom('fatal' as const, 'cancelled' as const, 'success' as const),
      acknowledged: fc.constant(0),
      started: fc.nat({ max: 1 }),
      beats: fc.constant(0),
      watched: fc.constant(0),
      zombie: fc.constant('none' as const),
      alarms: fc.constant(0),
    }),
  ),
  deadline: fc.constant(false),
  isInTheWay: mostly(false, true),
})

const runPlan = (tasks: fc.Arbitrary<TaskPlan[]>): fc.Arbitrary<RunPlan> =>
  fc.record({
    tasks,
    parts: fc.integer({ min: 1, max: 3 }),
    spread: fc.boolean(),
    flaw: mostly<RunPlan['flaw']>(
      'none',
      'none',
      'none',
      'a cycle',
      'an unknown upstream',
      'a task twice',
      'a part is missing',
    ),
    cancelAfter: fc.oneof({ weight: 3, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fc.nat({ max: 25 }) }),
    deadline: mostly(false, true),
    askedAgain: mostly<readonly boolean[]>([], [false], [true], [true, false]),
    plannedTwice: mostly(false, true),
  })

const small = runPlan(fc.array(taskPlan, { maxLength: 3, size: 'max' }))
const large = runPlan(fc.array(taskPlan, { maxLength: 8, size: 'max' }))
const ominous = runPlan(fc.array(ominousTask, { minLength: 3, maxLength: 6, size: 'max' }))

export const historyPlan = (): fc.Arbitrary<HistoryPlan> =>
  fc.record({
    runs: fc.array(
      fc.record({
        by: fc.constantFrom('manual' as const, 'rerun' as const, 'automation' as const),
        run: fc.oneof(small, large, ominous),
      }),
      { maxLength: 3 },
    ),
    schedules: fc.array(
      fc.record({
        steps: fc.array(
          fc.record({
            kind: fc.constantFrom(...scheduleSteps),
            twice: mostly(false, true),
            run: small,
          }),
          { maxLength: 5 },
        ),
      }),
      { maxLength: 2 },
    ),
    sensors: fc.array(
      fc.record({
        steps: fc.array(
          fc.record({
            kind: fc.constantFrom(...sensorSteps),
            runs: fc.array(small, { maxLength: 2 }),
          }),
          { maxLength: 5 },
        ),
      }),
      { maxLength: 2 },
    ),
    watchers: fc.array(
      fc.record({
        first: fc.constantFrom(...watches),
        steps: fc.array(
          fc.record({
            // Most of the time things happen to it, not to what it watches.
            kind: fc.oneof(fc.constantFrom(...watcherSteps), fc.constantFrom('hear', 'hear', 'bury', 'replay')),
            runs: fc.array(small, { maxLength: 1 }),
          }),
          { maxLength: 6 },
        ),
      }),
      { maxLength: 2 },
    ),
    backfills: fc.array(
      fc.record({
        chunks: fc.array(small, { minLength: 1, maxLength: 3 }),
        twice: fc.array(fc.boolean(), { maxLength: 3 }),
        pauses: fc.nat({ max: 2 }),
        cancelAfter: fc.oneof(fc.constant(null), fc.nat({ max: 10 })),
        ends: fc.boolean(),
      }),
      { maxLength: 2 },
    ),
    strays: fc.array(
      fc.record({
        kind: fc.constantFrom(...strayKinds, ...inTheWay),
        target: fc.nat({ max: 20 }),
        variant: fc.nat({ max: 7 }),
        wait: fc.nat({ max: 30 }),
      }),
      { maxLength: 8 },
    ),
    steps: fc.oneof(fc.constant(null), fc.integer({ min: 1, max: 60 })),
    skewsMs: fc.array(fc.integer({ min: -5 * MINUTE_MS, max: 5 * MINUTE_MS }), { maxLength: 3 }),
    choices: fc.array(fc.nat({ max: 997 }), { maxLength: 60 }),
  })
