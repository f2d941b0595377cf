import { ServoError } from '../../lib/error.ts'
import type { Attributes } from '../../lib/otlp/span.ts'
import { SECOND_MS } from '../../lib/time.ts'

type Environment = Readonly<Record<string, string | undefined>>

export interface TraceSettings {
  readonly url: string
  readonly protocol: 'http/protobuf' | 'http/json'
  readonly headers: Readonly<Record<string, string>>
  readonly gzip: boolean
  readonly timeoutMs: number
  /** Spans that wait; further ones are dropped. */
  readonly maxQueue: number
  readonly maxBatch: number
  readonly delayMs: number
  readonly resource: Attributes
  readonly isSampled: (traceId: string, callerSampled: boolean | undefined) => boolean
}

/**
 * What the variables of OpenTelemetry ask for; undefined if they turn tracing off. By its specification, a value that cannot be understood
 * is passed over with a warning, as if it were not set. Throws only where nothing sensible is left to do.
 */
export function traceSettings(env: Environment, warn: (error: ServoError) => void): TraceSettings | undefined {
  if (env['OTEL_SDK_DISABLED']?.toLowerCase() === 'true') return undefined
  const exporters = (env['OTEL_TRACES_EXPORTER'] || 'otlp').split(',').map((name) => name.trim())
  if (!exporters.includes('otlp')) return undefined
  const of = (name: string): [string, string] => {
    const own = env[`OTEL_EXPORTER_OTLP_TRACES_${name}`]
    return own
      ? [`OTEL_EXPORTER_OTLP_TRACES_${name}`, own]
      : [`OTEL_EXPORTER_OTLP_${name}`, env[`OTEL_EXPORTER_OTLP_${name}`] ?? '']
  }
  const number = (name: string, value: string | undefined, otherwise: number): number => {
    if (!value) return otherwise
    if (/^\d{1,9}$/.test(value) && Number(value) > 0) return Number(value)
    warn(passedOver(name, value, 'a whole number above 0'))
    return otherwise
  }
  const [protocolName, protocol] = of('PROTOCOL')
  const maxQueue = number('OTEL_BSP_MAX_QUEUE_SIZE', env['OTEL_BSP_MAX_QUEUE_SIZE'], 2_048)
  return {
    url: endpointOf(env),
    protocol: protocol === '' ? 'http/protobuf' : knownProtocol(protocolName, protocol),
    headers: pairs(of('HEADERS')[1]),
    gzip: of('COMPRESSION')[1] === 'gzip',
    timeoutMs: number(...of('TIMEOUT'), 10 * SECOND_MS),
    maxQueue,
    maxBatch: Math.min(maxQueue, number('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', env['OTEL_BSP_MAX_EXPORT_BATCH_SIZE'], 512)),
    delayMs: number('OTEL_BSP_SCHEDULE_DELAY', env['OTEL_BSP_SCHEDULE_DELAY'], 5 * SECOND_MS),
    resource: resourceOf(env),
    isSampled: samplerOf(env, warn),
  }
}

/** The endpoint of all signals gets the path of traces; the endpoint of traces is used as it is. */
function endpointOf(env: Environment): string {
  const own = env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT']
  const name = own ? 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT' : 'OTEL_EXPORTER_OTLP_ENDPOINT'
  const text = own || (env[name] ?? '')
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text))
    throw new ServoError('invalid', 'bad_setting', `${name} is not an address that begins with http:// or https://`, {
      hint: `Set ${name} to the OTLP/HTTP address of a collector, for example http://localhost:4318, or unset it.`,
    })
  return own ? text : `${text.replace(/\/+$/, '')}/v1/traces`
}

function knownProtocol(name: string, asked: string): TraceSettings['protocol'] {
  if (asked === 'http/protobuf' || asked === 'http/json') return asked
  throw new ServoError('invalid', 'bad_setting', `${name} cannot be ${JSON.stringify(asked.slice(0, 40))}`, {
    hint: `Set ${name} to http/protobuf or http/json, and the endpoint to the port for HTTP, usually 4318.`,
  })
}

function resourceOf(env: Environment): Attributes {
  const named = pairs(env['OTEL_RESOURCE_ATTRIBUTES'] ?? '')
  const name = env['OTEL_SERVICE_NAME'] || named['service.name'] || 'servo'
  return { ...named, 'service.name': name }
}

/** `a=1,b=2`, percent-encoded. */
function pairs(text: string): Record<string, string> {
  const found: Record<string, string> = {}
  for (const pair of text.split(',')) {
    const at = pair.indexOf('=')
    if (at < 1) continue
    found[decoded(pair.slice(0, at))] = decoded(pair.slice(at + 1))
  }
  return found
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.trim())
  } catch {
    return text.trim()
  }
}

/** The same trace is sampled or not in every process: the ratio is compared with digits of its id. */
function samplerOf(env: Environment, warn: (error: ServoError) => void): TraceSettings['isSampled'] {
  const name = env['OTEL_TRACES_SAMPLER'] || 'parentbased_always_on'
  const root = name.replace(/^parentbased_/, '')
  const ratio = root === 'traceidratio' ? ratioOf(env, warn) : 1
  const samplers: Record<string, (traceId: string) => boolean> = {
    always_on: () => true,
    always_off: () => false,
    // The last 56 bits, as trace context level 2 has it.
    traceidratio: (traceId) => Number.parseInt(traceId.slice(-14), 16) / 2 ** 56 < ratio,
  }
  const sampler = Object.hasOwn(samplers, root) ? samplers[root] : undefined
  if (sampler === undefined) {
    warn(passedOver('OTEL_TRACES_SAMPLER', name, `${Object.keys(samplers).join(', ')}, or one of these after parentbased_`))
    return (_, callerSampled) => callerSampled ?? true
  }
  return (traceId, callerSampled) => (name !== root && callerSampled !== undefined ? callerSampled : sampler(traceId))
}

function ratioOf(env: Environment, warn: (error: ServoError) => void): number {
  const text = env['OTEL_TRACES_SAMPLER_ARG'] ?? ''
  const ratio = text === '' ? 1 : Number(text)
  if (ratio >= 0 && ratio <= 1) return ratio
  warn(passedOver('OTEL_TRACES_SAMPLER_ARG', text, 'a number from 0 to 1'))
  return 1
}

const passedOver = (name: string, value: string, allowed: string): ServoError =>
  new ServoError('invalid', 'bad_setting', `${name} is ignored: it cannot be ${JSON.stringify(value.slice(0, 40))}`, {
    hint: `Set ${name} to ${allowed}, or unset it.`,
  })
