import type { Reason, ReasonCode, WhyAnswer, WhyVerdict } from './reasons.ts'
import { momentsIn, type Say, type WordsOf } from './say.ts'
import { assetWords } from './words-assets.ts'
import { didMore, scheduleWords, sensorWords } from './words-automation.ts'
import { backfillWords } from './words-backfills.ts'
import { originWords, runWords } from './words-runs.ts'

const words: WordsOf<ReasonCode> = {
  ...scheduleWords,
  ...sensorWords,
  ...originWords,
  ...runWords,
  ...backfillWords,
  ...assetWords,
}

const sentence = <C extends ReasonCode>({ code, facts }: Reason<C>, when: Say): string => words[code](facts, when)

const phrases: Readonly<Record<WhyVerdict, string>> = {
  ran: 'ran',
  did_not_run: 'did not run',
  is_due: 'is due',
  will_not_run: 'will not run',
  waits: 'waits',
  runs: 'is running',
  succeeded: 'succeeded',
  failed: 'failed',
  cancelled: 'was cancelled',
  fresh: 'is fresh',
  stale: 'is stale',
  never_made: 'was never materialized',
}

export interface WhyLine {
  /** How deep it is among the reasons. */
  readonly depth: number
  readonly text: string
}

/** The answer in words: what became of it and the first reason, then the others, each with those behind it. */
export function whyInWords(answer: WhyAnswer, timezone: string): WhyLine[] {
  const zone = answer.timezone ?? timezone
  const when = momentsIn(zone, answer.at)
  // What comes next is no reason for what became of it.
  const others = [...answer.because]
  const first = others[0]?.code === 'next_tick' ? undefined : others.shift()
  const lines: WhyLine[] = []
  const add = (depth: number, text: string): void => {
    // A name may have a line break, and must not look like a line of ours.
    lines.push({ depth, text: text.replaceAll('\n', '\\n') })
  }
  const walk = (reasons: readonly Reason[], depth: number): void => {
    for (const each of reasons) {
      // What came of a tick is told in its own line.
      const [own, ...behind] = each.because
      const outcome = each.code === 'last_tick' && own !== undefined ? `: ${sentence(own, when)}` : ''
      add(depth, `${isOrigin(each) ? 'because ' : ''}${sentence(each, when)}${outcome}`)
      walk(outcome === '' ? each.because : [...(own?.because ?? []), ...behind], depth + 1)
    }
  }
  const quiet = quietMessage(answer)
  const why = first === undefined ? '' : `${isOrigin(first) ? ' because ' : ': '}${sentence(first, when)}`
  const briefly =
    quiet && `${answer.subject.name} was evaluated and requested nothing at ${when(quiet.at)}, for message ${quiet.message_id}`
  add(0, briefly ?? `${whatHappened(answer, zone)}${why}`)
  if (first !== undefined) walk(first.because, 1)
  walk(others, 1)
  // The head names the zone with its moment, if it has one.
  if (answer.at === null && answer.timezone !== null) add(1, `times are in ${zone}`)
  return lines
}

/** One reason in words, without those behind it. */
export const wordsOfReason = (one: Reason, timezone: string): string => sentence(one, momentsIn(timezone, null))

/** True for reasons that say who asked. */
const isOrigin = ({ code }: Reason): boolean => code.startsWith('asked_by_')

/** The message that a sensor was evaluated for last, if it asked for nothing. */
function quietMessage({ verdict, because: [first] }: WhyAnswer): { at: string; message_id: string } | undefined {
  if (verdict !== 'did_not_run' || first?.code !== 'evaluation_no_new_data') return undefined
  const { at, message_id } = first.facts
  return message_id === null || didMore(first.facts) ? undefined : { at, message_id }
}

/** A sensor that was evaluated and requested no run did what it is there for. */
function didItsJob(verdict: WhyVerdict, first: Reason | undefined): string | undefined {
  if (verdict !== 'did_not_run') return undefined
  return first?.code === 'evaluation_no_new_data' || first?.code === 'message_accepted' ? 'was evaluated' : undefined
}

/** `nightly did not run at 2025-01-15 05:00 (Europe/Paris)`. */
function whatHappened({ subject, verdict, at, timezone, because }: WhyAnswer, zone: string): string {
  const { name, partition, message_id } = subject
  const what = `${partition === null ? name : `${name}[${partition}]`} ${didItsJob(verdict, because[0]) ?? phrases[verdict]}`
  if (message_id !== null) return `${what} for message ${message_id}`
  if (at === null) return what
  const [first] = because
  const isLate = first?.code === 'triggered' && first.facts.cause !== 'cron' && (first.facts.decided_at ?? at) > at
  return `${what} ${isLate ? 'late for' : 'at'} ${momentsIn(zone, null)(at)}${timezone === null ? '' : ` (${timezone})`}`
}
