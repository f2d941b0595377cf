import type { Controller, Observed } from '../../model/controller.ts'
import { type NewEvent, newEvent } from '../../model/event.ts'
import type { AnyRow } from '../../model/table.ts'
import { backfills, isBackfillOver } from '../backfills/backfills.table.ts'
import { isRunOver, runs } from '../runs/runs.table.ts'
import { scheduleState } from '../schedules/schedule-state.table.ts'
import { sensorState } from '../sensors/sensor-state.table.ts'
import { isRowOf } from '../typed-rows.ts'
import { alertMarks } from './alert-marks.table.ts'
import { AlertRaised } from './alert-raised.event.ts'
import type { AlertRule } from './alert-rule.ts'
import { type AlertNews, cut, newsOfAsset, newsOfBackfill, newsOfRun, newsOfSchedule, newsOfSensor } from './news.ts'
import { staleAssets } from './stale-assets.table.ts'

/** Errors in a row after which a sensor counts as failing: one or two are often over before anybody can look. */
const FAILING_ERRORS = 3

/**
 * Decides who is told of what: once for each run, backfill, late tick, row of errors and stale asset. What was told of is noted in rows,
 * so that a start repeats nothing.
 */
export function alertController(rules: () => readonly AlertRule[]): Controller {
  const changed = new Set<() => AlertNews[]>()
  const looks = new WeakMap<object, () => AlertNews[]>()
  let rowsNow: Observed['rows'] | undefined
  /** One look for each row, however often it changes before it is looked at. */
  const look = (row: Readonly<AnyRow>, at: () => AlertNews[]): void => {
    const known = looks.get(row) ?? at
    looks.set(row, known)
    changed.add(known)
  }
  const raisedFor = (subject: string): number => rowsNow?.hot(alertMarks).get(subject)?.raised_for ?? 0
  return {
    name: 'alert',
    doc: 'Raises alerts about runs, checks, schedules, sensors, backfills and assets, as the config says.',
    watches: [runs, backfills, scheduleState, sensorState, staleAssets],
    observe(table, row) {
      if (isRowOf(runs, table, row)) {
        if (isRunOver(row.state) && row.alerted_at === null)
          look(row, () => (rowsNow === undefined || row.alerted_at !== null ? [] : newsOfRun(rowsNow, row)))
      } else if (isRowOf(backfills, table, row)) {
        if (isBackfillOver(row.state) && row.alerted_at === null)
          look(row, () => (row.alerted_at === null ? newsOfBackfill(row) : []))
      } else if (isRowOf(scheduleState, table, row)) {
        if (row.late_tick !== null)
          look(row, () =>
            rowsNow && (row.late_tick ?? 0) > raisedFor(`schedule:${row.schedule_id}`) ? newsOfSchedule(rowsNow, row) : [],
          )
      } else if (isRowOf(sensorState, table, row)) {
        if (row.consecutive_errors >= FAILING_ERRORS)
          look(row, () =>
            rowsNow &&
            row.consecutive_errors >= FAILING_ERRORS &&
            (row.failing_since ?? 0) > raisedFor(`sensor:${row.sensor_id}`)
              ? newsOfSensor(rowsNow, row)
              : [],
          )
      } else if (isRowOf(staleAssets, table, row) && row.stale)
        look(row, () => (row.stale && row.stale_since > raisedFor(`asset:${row.asset_key}`) ? newsOfAsset(row) : []))
    },
    decide({ rows }) {
      if (changed.size === 0) return []
      const wanted = rules()
      rowsNow = rows
      // All that is to be told of one subject is told at once: afterwards it counts as told of.
      const decisions = wanted.length === 0 ? [] : [...changed].map((news) => eventsOf(news(), wanted))
      changed.clear()
      return decisions.filter((events) => events.length > 0)
    },
  }
}

const eventsOf = (news: readonly AlertNews[], rules: readonly AlertRule[]): NewEvent[] =>
  news.flatMap(({ kind, subject, title, facts, concerns }) =>
    rules
      .filter((rule) => rule.on.has(kind) && concerns(rule))
      .map(({ target }) => newEvent(AlertRaised, { target, kind, subject, title: cut(title, 1_024), facts })),
  )
