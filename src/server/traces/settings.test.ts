import { describe, expect, test } from 'vitest'
import { messageOf } from '../../lib/error.ts'
import { traceSettings } from './settings.ts'
import { wantedTraces } from './wanted.ts'

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318/' }
const LOW = '0af7651916cd43dd8400000000000001'
const HIGH = '0af7651916cd43dd84ffffffffffffff'

function settings(env: Record<string, string>) {
  const warnings: string[] = []
  const found = traceSettings({ ...ENDPOINT, ...env }, (error) => warnings.push(messageOf(error)))
  return { ...found, warnings }
}

describe('the variables of OpenTelemetry', () => {
  test('[H8] say where to send spans, as what, and with which headers', () => {
    const given = settings({
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20t,x-team=shop',
      OTEL_SERVICE_NAME: 'shop',
      OTEL_RESOURCE_ATTRIBUTES: 'service.name=other,deployment.environment=prod',
      OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
    })
    expect(given).toMatchObject({
      url: 'http://collector:4318/v1/traces',
      protocol: 'http/protobuf',
      headers: { authorization: 'Bearer t', 'x-team': 'shop' },
      resource: { 'service.name': 'shop', 'deployment.environment': 'prod' },
      gzip: true,
      maxQueue: 2_048,
      warnings: [],
    })
    const own = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://t.example/x', OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json' }
    expect(settings(own)).toMatchObject({ url: 'https://t.example/x', protocol: 'http/json' })
  })

  test('[H8] can turn it off', () => {
    for (const off of [{ OTEL_SDK_DISABLED: 'TRUE' }, { OTEL_TRACES_EXPORTER: 'none' }])
      expect(traceSettings({ ...ENDPOINT, ...off }, () => undefined)).toBeUndefined()
  })

  test('[H8] choose which traces are sent: by the caller, by a ratio of trace ids, or always', () => {
    const ratio = { OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.5' }
    const { isSampled } = settings(ratio)
    expect([isSampled?.(LOW, undefined), isSampled?.(HIGH, undefined)]).toEqual([true, false])
    expect([isSampled?.(LOW, false), isSampled?.(HIGH, true)]).toEqual([false, true])
    expect(settings({ OTEL_TRACES_SAMPLER: 'always_off' }).isSampled?.(LOW, true)).toBe(false)
    expect(settings({}).isSampled?.(HIGH, undefined)).toBe(true)
  })

  test('[H8] that cannot be understood are passed over with a warning', () => {
    const { warnings, maxQueue, isSampled } = settings({
      OTEL_BSP_MAX_QUEUE_SIZE: 'many',
      OTEL_TRACES_SAMPLER: 'jaeger_remote',
    })
    expect([maxQueue, isSampled?.(LOW, undefined)]).toEqual([2_048, true])
    expect(warnings).toEqual([
      'OTEL_BSP_MAX_QUEUE_SIZE is ignored: it cannot be "many"',
      'OTEL_TRACES_SAMPLER is ignored: it cannot be "jaeger_remote"',
    ])
  })

  test('[H8] that name no HTTP address cost the traces and nothing else', async () => {
    const told: string[] = []
    const options = { onTrouble: (error: unknown) => told.push(messageOf(error)) } as never
    expect(await wantedTraces({ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4317' }, options)).toBeUndefined()
    expect(await wantedTraces({ ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, options)).toBeUndefined()
    expect(await wantedTraces({}, options)).toBeUndefined()
    expect(told).toEqual([
      'OTEL_EXPORTER_OTLP_ENDPOINT is not an address that begins with http:// or https://',
      'OTEL_EXPORTER_OTLP_PROTOCOL cannot be "grpc"',
    ])
  })
})
