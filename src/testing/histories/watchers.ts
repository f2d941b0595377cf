import { evalIdOf } from '../../domain/sensors/evaluation-ids.ts'
import { SensorDefined } from '../../domain/sensors/sensor-defined.event.ts'
import { SensorMessageReplayed } from '../../domain/sensors/sensor-message-replayed.event.ts'
import { SensorPaused } from '../../domain/sensors/sensor-paused.event.ts'
import { SensorRemoved } from '../../domain/sensors/sensor-removed.event.ts'
import { SensorResumed } from '../../domain/sensors/sensor-resumed.event.ts'
import type { Envelope } from '../../model/envelope.ts'
import type { RunPlan, WatcherPlan } from './plan.ts'
import { evaluation } from './sensors.ts'
import type { Actor, World } from './world.ts'

interface Watch {
  readonly type: 'asset' | 'run'
  /** Null for every run. */
  readonly assets: readonly string[] | null
  readonly wants: readonly string[]
}

/** What should have become of a sensor that watches assets or runs. */
export interface ExpectedWatcher {
  readonly id: string
  /** Null while it is not declared, disabled or removed. */
  watch: Watch | null
  /** Messages that wait for it, and whether each is a dead letter. */
  readonly waiting: Map<string, boolean>
  readonly accepted: Set<string>
}

/** Something that happened, once. */
export interface News {
  readonly id: string
  readonly type: Watch['type']
  readonly what: string
  readonly assets: readonly string[]
  /** The sensor that asked for the run. */
  readonly asker?: string | undefined
}

/** Hands the news to whoever watches. Deliberately naive: it asks everybody. */
export function tellWatchers(watchers: readonly ExpectedWatcher[], { id, type, what, assets, asker }: News): void {
  for (const { id: own, watch, waiting } of watchers) {
    if (watch?.type !== type || !watch.wants.includes(what) || own === asker) continue
    const { assets: watched } = watch
    if (watched === null || watched.includes('*') || assets.some((asset) => watched.includes(asset))) waiting.set(id, false)
  }
}

const watches: Partial<Record<string, Watch>> = {
  'watch assets': { type: 'asset', assets: ['asset0', 'asset1'], wants: ['materialized', 'check_failed'] },
  'watch all assets': { type: 'asset', assets: ['*'], wants: ['materialized'] },
  'watch checks': { type: 'asset', assets: ['asset2', 'asset0'], wants: ['check_failed'] },
  'watch runs': { type: 'run', assets: null, wants: ['SUCCEEDED', 'FAILED', 'CANCELLED'] },
  'watch runs of': { type: 'run', assets: ['asset1'], wants: ['SUCCEEDED', 'CANCELLED'] },
}

/** How long it waits for something to happen. */
const PATIENCE = 6

/** A sensor that watches: declared, changed, removed and declared again, and given what happened, which may fail. */
export function* watcherLife(world: World, index: number, plan: WatcherPlan): Actor {
  const id = `watcher-${index}`
  const watcher: ExpectedWatcher = { id, watch: null, waiting: new Map(), accepted: new Set() }
  world.watchers.push(watcher)
  const tries = new Map<string, number>()
  let declared: { readonly watch: Watch; readonly enabled: boolean; readonly hash: string } | undefined
  let begun = 0

  const declare = (watch: Watch, enabled: boolean, hash: string, step: number): Envelope[] => {
    if (!enabled || watch.type !== declared?.watch.type) watcher.waiting.clear()
    declared = { watch, enabled, hash }
    watcher.watch = enabled ? watch : null
    const { type, wants, assets } = watch
    const config = type === 'asset' ? { type, assets, happenings: wants } : { type, assets, states: wants }
    const facts = { sensor_id: id, sensor_name: id, definition_hash: hash, request_id: `r${step}` }
    return world.write(SensorDefined, { ...facts, config, enabled })
  }

  const evaluate = (message: string, outcome: 'ok' | 'error', runs: readonly RunPlan[], max_tries = 100): Envelope[] => {
    const attempt = (tries.get(message) ?? 0) + 1
    tries.set(message, attempt)
    const source = { source: 'push', message_id: message, try: attempt, max_tries } as const
    const began = `b${begun++}`
    const counts = outcome === 'ok' && !watcher.accepted.has(message)
    if (counts) watcher.accepted.add(message)
    if (counts) watcher.waiting.delete(message)
    const evalId = evalIdOf(id, source, began)
    return evaluation(world, { id, source, evalId, outcome, counts }, runs, { begun: began })
  }

  for (const [step, { kind, runs }] of [{ kind: plan.first, runs: [] }, ...plan.steps].entries()) {
    const request = { sensor_id: id, request_id: `r${step}`, changed_by: 'ada' }
    const watch = watches[kind]
    if (watch !== undefined) {
      yield declare(watch, true, `hash-${step}`, step)
    } else if (kind === 'disable') {
      if (declared !== undefined) yield declare(declared.watch, false, `hash-${step}`, step)
    } else if (kind === 'declare again') {
      if (declared !== undefined) yield declare(declared.watch, declared.enabled, declared.hash, step)
    } else if (kind === 'remove') {
      watcher.watch = null
      watcher.waiting.clear()
      yield world.write(SensorRemoved, { sensor_id: id, request_id: `r${step}`, removed_by: 'ada' })
    } else if (kind === 'pause') yield world.write(SensorPaused, request)
    else if (kind === 'resume') yield world.write(SensorResumed, request)
    else {
      const wanted = kind === 'replay'
      const found = (): string[] => [...watcher.waiting].flatMap(([message, dead]) => (dead === wanted ? [message] : []))
      for (let turn = 0; turn < PATIENCE && found().length === 0; turn++) yield undefined
      const message = found()[world.roll(found().length)]
      if (message === undefined) continue
      if (kind === 'replay') {
        watcher.waiting.set(message, false)
        const replay = { sensor_id: id, message_id: message, request_id: `r${step}`, requested_by: 'ada' }
        yield world.write(SensorMessageReplayed, replay)
      } else if (kind === 'fail') yield evaluate(message, 'error', [])
      else if (kind === 'bury') {
        watcher.waiting.set(message, true)
        yield evaluate(message, 'error', [], 1)
      } else {
        yield evaluate(message, 'ok', runs)
        // Another server had begun to evaluate it as well.
        if (kind === 'hear twice') yield evaluate(message, 'ok', runs)
      }
    }
  }
}
