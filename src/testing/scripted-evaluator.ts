import type { EvaluationReport, EvaluationRequest, Evaluator } from '../contract/evaluation.ts'
import type { AlarmClock } from '../ports/clock.ts'

/** How an evaluation goes: how long it takes, and how it ends. One that never ends is killed with its process. */
export interface ScriptedEvaluation {
  readonly ms?: number
  readonly report?: EvaluationReport | 'never'
}

/** Evaluates as the test says, on the clock of the test, and records what it was asked, in order. */
export class ScriptedEvaluator implements Evaluator {
  readonly asked: EvaluationRequest[] = []
  /** As many as ever went on at once. */
  most = 0
  #going = 0
  readonly #clock: AlarmClock
  script: (request: EvaluationRequest) => ScriptedEvaluation

  constructor(clock: AlarmClock, script: (request: EvaluationRequest) => ScriptedEvaluation = () => ({})) {
    this.#clock = clock
    this.script = script
  }

  async evaluate(request: EvaluationRequest): Promise<EvaluationReport> {
    this.asked.push(request)
    this.#going += 1
    this.most = Math.max(this.most, this.#going)
    const { ms = 0, report = { outcome: 'requests', runs: [] } } = this.script(request)
    if (report === 'never') return await new Promise(() => undefined)
    if (ms > 0) await this.#clock.sleep(ms)
    this.#going -= 1
    return report
  }
}
