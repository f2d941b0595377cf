import { zoneNamed } from '../../cron/zone-clocks.ts'
import { daysInMonth, weekdayOf } from '../../lib/calendar.ts'
import { DAY_MS } from '../../lib/time.ts'
import { badWindow, momentOf, type TimeDefinition } from './definition.ts'
import { TimeFormat } from './format.ts'

export const timeUnits = ['minutely', 'hourly', 'daily', 'weekly', 'monthly', 'quarterly', 'yearly', 'cron'] as const
export type TimeUnit = (typeof timeUnits)[number]

export interface UnitOptions extends Pick<TimeDefinition, 'start' | 'end' | 'endOffset' | 'exclusions'> {
  /** By default UTC. */
  readonly timezone?: string
  readonly format?: string
  /** Minutely: how many minutes a window has; they must fill an hour. */
  readonly every?: number
  /** Where windows begin: after this many minutes of the hour, */
  readonly minute?: number
  /** hours of the day, */
  readonly hour?: number
  /** on this weekday (0 is Sunday; by default that of `start`), */
  readonly weekday?: number
  /** on this day of the month, */
  readonly day?: number
  /** in this month of the year or, for quarters, of the first quarter. */
  readonly month?: number
  readonly cron?: string
}

type UnitOption = 'every' | 'minute' | 'hour' | 'weekday' | 'day' | 'month' | 'cron'

const units: Record<TimeUnit, { format: string; takes: readonly UnitOption[] }> = {
  minutely: { format: '%Y-%m-%dT%H:%M', takes: ['every'] },
  hourly: { format: '%Y-%m-%dT%H', takes: ['minute'] },
  daily: { format: '%Y-%m-%d', takes: ['minute', 'hour'] },
  weekly: { format: '%Y-%m-%d', takes: ['minute', 'hour', 'weekday'] },
  monthly: { format: '%Y-%m', takes: ['minute', 'hour', 'day'] },
  quarterly: { format: '%Y-%m', takes: ['minute', 'hour', 'day', 'month'] },
  yearly: { format: '%Y', takes: ['minute', 'hour', 'day', 'month'] },
  cron: { format: '%Y-%m-%dT%H:%M', takes: ['cron'] },
}

/** A unit people name, as the expression and the format of keys that it stands for. */
export function unitDefinition(type: TimeUnit, options: UnitOptions): TimeDefinition {
  if (!Object.hasOwn(units, type))
    throw badWindow(`${JSON.stringify(type)} is not a unit of time`, `Use ${timeUnits.join(', ')}.`)
  const { takes } = units[type]
  for (const place of ['every', 'minute', 'hour', 'weekday', 'day', 'month', 'cron'] as const) {
    if (options[place] === undefined || takes.includes(place)) continue
    throw badWindow(
      `${type} windows have no option \`${place}\``,
      `Options: ${takes.join(', ')}. For anything else use cronWindows().`,
    )
  }
  const { start, end, endOffset, exclusions, timezone = 'UTC', format = units[type].format } = options
  return {
    cron: cronOf(type, options, timezone, format),
    ...{ timezone, start, format },
    ...(end === undefined ? {} : { end }),
    ...(endOffset === undefined ? {} : { endOffset }),
    ...(exclusions === undefined ? {} : { exclusions }),
  }
}

function cronOf(type: TimeUnit, options: UnitOptions, timezone: string, format: string): string {
  const place = (name: Exclude<UnitOption, 'cron'>, least: number, most: number, otherwise: number) => {
    const value = options[name] ?? otherwise
    if (Number.isInteger(value) && value >= least && value <= most) return value
    throw badWindow(`\`${name}\` of ${type} windows cannot be ${value}`, `Write a whole number from ${least} to ${most}.`)
  }
  const time = () => `${place('minute', 0, 59, 0)} ${place('hour', 0, 23, 0)}`
  switch (type) {
    case 'minutely': {
      const every = place('every', 1, 60, 1)
      if (60 % every !== 0)
        throw badWindow(
          `windows of ${every} minutes do not divide an hour`,
          'Use 1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30 or 60, or cronWindows().',
        )
      return every === 1 ? '* * * * *' : every === 60 ? '0 * * * *' : `*/${every} * * * *`
    }
    case 'hourly':
      return `${place('minute', 0, 59, 0)} * * * *`
    case 'daily':
      return `${time()} * * *`
    case 'weekly':
      return `${time()} * * ${place('weekday', 0, 6, options.weekday ?? weekdayOfStart(options.start, timezone, format))}`
    // Every month has a 28th; for the last day of each there is `0 0 L * *`.
    case 'monthly':
      return `${time()} ${place('day', 1, 28, 1)} * *`
    case 'quarterly': {
      const month = place('month', 1, 3, 1)
      return `${time()} ${place('day', 1, 28, 1)} ${[0, 3, 6, 9].map((more) => month + more).join(',')} *`
    }
    case 'yearly': {
      const month = place('month', 1, 12, 1)
      return `${time()} ${place('day', 1, daysInMonth(2025, month), 1)} ${month} *`
    }
    case 'cron':
      if (options.cron === undefined) throw badWindow('cron windows need an expression', "Write cron: '0 6 * * MON-FRI'.")
      return options.cron
  }
}

function weekdayOfStart(start: string | number, timezone: string, format: string): number {
  const zone = zoneNamed(timezone)
  return weekdayOf(Math.floor(zone.wallAt(momentOf('start', start, new TimeFormat(format), zone)) / DAY_MS))
}
