import type { Rows } from '../../model/rows.ts'
import type { Traces, TracesOptions } from './traces.ts'

type Environment = Readonly<Record<string, string | undefined>>
/** Begins to trace, once there are rows to trace by. */
export type OpenTraces = (rows: () => Rows) => Traces

/** True if the environment says where to send spans. Nothing else of this folder is loaded otherwise. */
const wantsTraces = (env: Environment): boolean =>
  Boolean(env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'] || env['OTEL_EXPORTER_OTLP_ENDPOINT'])

/** How to trace as the environment asks for; undefined if it does not. Settings that make no sense are told of, and cost only the traces. */
export async function wantedTraces(
  env: Environment,
  options: Omit<TracesOptions, 'settings' | 'rows'>,
): Promise<OpenTraces | undefined> {
  if (!wantsTraces(env)) return undefined
  const [{ traceSettings }, { openTraces }] = await Promise.all([import('./settings.ts'), import('./traces.ts')])
  try {
    const settings = traceSettings(env, options.onTrouble)
    return settings && ((rows) => openTraces({ ...options, settings, rows }))
  } catch (error) {
    options.onTrouble(error)
    return undefined
  }
}
