import type { Evaluator } from '../../contract/evaluation.ts'
import { sensorDefinitions } from '../../domain/sensors/sensor-definitions.table.ts'
import type { Rows } from '../../model/rows.ts'

/** Shorter values would mask words that have nothing to do with them. */
const MIN_SECRET = 4

interface Options {
  readonly rows: () => Rows
  readonly environment: Readonly<Record<string, string | undefined>>
}

/** Code that fails may quote its environment. Errors are kept for ever, so the secrets of webhooks are taken out of them. */
export const maskedEvaluator = (evaluator: Evaluator, options: Options): Evaluator => ({
  async evaluate(request) {
    const report = await evaluator.evaluate(request)
    return report.outcome === 'error' ? { ...report, error: withoutSecrets(report.error, options) } : report
  },
})

function withoutSecrets(text: string, { rows, environment }: Options): string {
  let masked = text
  for (const { config } of rows().hot(sensorDefinitions).all()) {
    for (const name of config.type === 'webhook' ? config.secrets : []) {
      const value = environment[name] ?? ''
      // As it is, and as JSON has it.
      const forms = [value, JSON.stringify(value).slice(1, -1)].filter((form) => form.length >= MIN_SECRET)
      for (const form of forms) masked = masked.replaceAll(form, () => `[${name}]`)
    }
  }
  return masked
}
