import type { EvaluationReport, Evaluator } from '../../contract/evaluation.ts'
import { type ConditionAnswer, type Conditions, noConditions, type TickInQuestion } from '../../domain/schedules/conditions.ts'
import { toIso } from '../../lib/time.ts'

interface Options {
  readonly evaluator: Evaluator | undefined
  readonly mintId: () => string
  /** Called when there is an answer. */
  readonly onAnswer: () => void
}

interface Asked {
  readonly question: TickInQuestion
  answer: ConditionAnswer | undefined
}

/**
 * Has conditions of schedules evaluated by workers. A schedule decides its ticks one after the other, so each has one question at most;
 * what is not decided when this process ends is asked again by the next.
 */
export function evaluatedConditions({ evaluator, mintId, onAnswer }: Options): Conditions {
  if (evaluator === undefined) return noConditions
  const asked = new Map<string, Asked>()

  const evaluate = async (entry: Asked): Promise<void> => {
    const { schedule_id, schedule_name, tick, timeout_ms } = entry.question
    const report = await evaluator.evaluate({
      of: 'condition',
      evaluation_id: mintId(),
      timeout_ms,
      schedule: schedule_name,
      scheduled_for: toIso(tick),
    })
    // The schedule has gone on to another tick.
    if (asked.get(schedule_id) !== entry) return
    // The server closes.
    if (report.outcome === 'cancelled') return
    entry.answer = answerOf(report, timeout_ms)
    onAnswer()
  }

  return {
    ask(question) {
      const known = asked.get(question.schedule_id)
      if (known?.question.tick === question.tick && known.question.definition_version === question.definition_version)
        return known.answer
      const entry: Asked = { question, answer: undefined }
      asked.set(question.schedule_id, entry)
      void evaluate(entry)
      return undefined
    },
    isOut: () => evaluator.outage?.()?.isResting === true,
    forget: (scheduleId) => void asked.delete(scheduleId),
  }
}

function answerOf(report: Exclude<EvaluationReport, { outcome: 'cancelled' }>, timeoutMs: number): ConditionAnswer {
  if (report.outcome === 'unavailable') return { verdict: 'unavailable' }
  if (report.outcome === 'condition') {
    if (report.holds) return { verdict: 'holds' }
    return { verdict: 'does not hold', reason: report.reason || 'its condition did not hold' }
  }
  return { verdict: 'failed', reason: `its condition could not be evaluated: ${whatHappened(report, timeoutMs)}` }
}

function whatHappened(
  report: Exclude<EvaluationReport, { outcome: 'cancelled' | 'unavailable' | 'condition' }>,
  timeoutMs: number,
): string {
  if (report.outcome === 'error') return report.error
  if (report.outcome === 'timed_out') return `it took longer than ${timeoutMs} ms`
  return 'the worker answered something else'
}
