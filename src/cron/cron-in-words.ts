import { daysInWords } from './days-in-words.ts'
import { namedDays } from './named-days.ts'
import type { Cron } from './parse-cron.ts'
import { timesInWords } from './times-in-words.ts'

/**
 * An expression in plain English, such as `at 05:00 on Monday to Friday`. The words are made from what the expression means and not
 * from how it is written, so that expressions with the same times and days read the same.
 */
export function cronInWords(cron: Cron): string {
  const named = namedDays(cron)
  const days = daysInWords(named)
  const { words, namesTimes } = timesInWords(cron, days === '')
  const isEachDay = named.days === undefined && named.weekdays === undefined
  return [words, namesTimes && isEachDay ? 'every day' : '', days].filter((part) => part !== '').join(' ')
}
