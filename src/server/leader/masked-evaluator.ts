import type { EvaluationReport, Evaluator } from '../../contract/evaluation.ts'
import { sensorDefinitions } from '../../domain/sensors/sensor-definitions.table.ts'
import { Redactor, secretsOf } from '../../lib/redactor.ts'
import type { Rows } from '../../model/rows.ts'

interface Options {
  readonly rows: () => Rows
  readonly environment: Readonly<Record<string, string | undefined>>
}

/**
 * A worker takes out the secrets that its project declares before it reports. The secrets of webhooks that were made over the
 * API are known to the leader alone, so it looks again.
 */
export function maskedEvaluator(evaluator: Evaluator, { rows, environment }: Options): Evaluator {
  const redactor = new Redactor()
  const masked = (report: EvaluationReport): EvaluationReport => {
    if (report.outcome !== 'error' && report.outcome !== 'condition' && report.outcome !== 'unavailable') return report
    const webhooks = [...rows().hot(sensorDefinitions).all()]
    const names = webhooks.flatMap(({ config }) => (config.type === 'webhook' ? config.secrets : []))
    redactor.learn(secretsOf(environment, names))
    if (report.outcome === 'unavailable') return { ...report, reason: redactor.text(report.reason) }
    return report.outcome === 'error'
      ? { ...report, error: redactor.text(report.error) }
      : { ...report, reason: report.reason && redactor.text(report.reason) }
  }
  return {
    evaluate: async (request) => masked(await evaluator.evaluate(request)),
    outage: () => {
      const outage = evaluator.outage?.()
      return outage && { ...outage, reason: redactor.text(outage.reason) }
    },
  }
}
