/** `a, b and c`. */
export function inSeries(words: readonly string[]): string {
  const [last = '', ...before] = [...words].reverse()
  return before.length === 0 ? last : `${before.reverse().join(', ')} and ${last}`
}

/** `1st`, `2nd`, `3rd`, `11th`. */
export function ordinal(number: number): string {
  const [units, isTeen] = [number % 10, Math.floor((number % 100) / 10) === 1]
  const ending = isTeen ? 'th' : (['th', 'st', 'nd', 'rd'][units] ?? 'th')
  return `${number}${ending}`
}

/** Numbers with the same distance between neighbours. */
export interface Progression {
  readonly from: number
  readonly to: number
  readonly step: number
}

/** The progression that ascending numbers are. Three are said sooner than the rule behind them, so it takes four. */
export function progressionOf(numbers: readonly number[]): Progression | undefined {
  const [from = 0, second = 0] = numbers
  const step = second - from
  const isRegular = numbers.every((number, index) => number === from + index * step)
  return numbers.length >= 4 && isRegular ? { from, to: from + (numbers.length - 1) * step, step } : undefined
}

/** The distance between numbers from 0 on that divide a whole evenly, such as the minutes of an hour: 1 when it is all of them. */
export function stepThrough(numbers: readonly number[], size: number): number | undefined {
  const step = size / numbers.length
  return numbers.length > 1 && numbers.every((number, index) => number === index * step) ? step : undefined
}

/** Numbers that follow each other without a gap. */
export interface NumberRun {
  readonly from: number
  readonly to: number
}

export function runsOf(numbers: readonly number[]): NumberRun[] {
  const runs: { from: number; to: number }[] = []
  for (const number of numbers) {
    const run = runs.at(-1)
    if (run !== undefined && run.to === number - 1) run.to = number
    else runs.push({ from: number, to: number })
  }
  return runs
}

/** The numbers from the one that follows the widest gap, where the first follows the last: 22, 23, 24, 25 for 0, 1, 22, 23 of 24. */
export function afterWidestGap(numbers: readonly number[], size: number): number[] {
  const gaps = numbers.map((number, index) => number - (numbers.at(index - 1) ?? 0) + (index === 0 ? size : 0))
  const start = gaps.indexOf(Math.max(...gaps))
  return [...numbers.slice(start), ...numbers.slice(0, start).map((number) => number + size)]
}

/** Numbers in a series, of which three or more that follow each other are one word: `0 to 10 and 30`. */
export function seriesWithRuns(numbers: readonly number[], word: (number: number) => string = String): string[] {
  return runsOf(numbers).flatMap(({ from, to }) => {
    if (to - from >= 2) return [`${word(from)} to ${word(to)}`]
    return to === from ? [word(from)] : [word(from), word(to)]
  })
}
