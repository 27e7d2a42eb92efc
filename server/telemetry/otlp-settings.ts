import { readFileSync } from 'node:fs'
import { attempt, errorReason, errorText } from '../errors.ts'

/**
 * Where a collector of OpenTelemetry is, by the variables that its SDKs read.
 * See https://opentelemetry.io/docs/specs/otel/protocol/exporter/ and …/configuration/sdk-environment-variables/.
 */
export type Environment = Record<string, string | undefined>
export type OtlpTarget = {
  url: string,
  headers: Record<string, string>,
  timeoutMs: number,
  isCompressed: boolean,
  /** else protobuf */
  isJson: boolean,
  /** PEM */
  ca?: string
}
type OtlpSettings = {
  /** null: they are not wanted */
  metrics: OtlpTarget | null,
  logs: OtlpTarget | null,
  /** as the environment names this service */
  resource: Record<string, string>,
  /** of metrics */
  intervalMs: number,
  /** why something that is wanted cannot be sent */
  problems: string[]
}

const SIGNALS = ['metrics', 'logs'] as const
const DEFAULT_TIMEOUT_MS = 10_000
const DEFAULT_INTERVAL_MS = 60_000
const MIN_INTERVAL_MS = 1000
const MAX_MS = 2 ** 31 - 1

export function readOtlpSettings (environment: Environment): OtlpSettings {
  const problems: string[] = []
  const [metrics, logs] = SIGNALS.map((signal) => {
    try {
      return isWanted(environment, signal) ? readTarget(environment, signal) : null
    } catch (error) {
      problems.push(errorText(error))
      return null
    }
  })
  return { metrics, logs,
    resource: { ...readPairs(environment.OTEL_RESOURCE_ATTRIBUTES),
      ...environment.OTEL_SERVICE_NAME && { 'service.name': environment.OTEL_SERVICE_NAME } },
    intervalMs: Math.max(MIN_INTERVAL_MS, millisecondsOf(environment.OTEL_METRIC_EXPORT_INTERVAL, DEFAULT_INTERVAL_MS)),
    problems: [...new Set(problems)] }
}

function isWanted (environment: Environment, signal: 'metrics' | 'logs') {
  const isDisabled = environment.OTEL_SDK_DISABLED?.toLowerCase() === 'true'
  const exporters = environment[`OTEL_${signal.toUpperCase()}_EXPORTER`]?.split(',').map((each) => each.trim()) ??
    ['otlp']
  return !isDisabled && exporters.includes('otlp') && endpointOf(environment, signal) !== null
}

/** @throws {TypeError} names the variable that is wrong, and never its value where that may be a secret */
function readTarget (environment: Environment, signal: 'metrics' | 'logs'): OtlpTarget {
  const own = `OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_`
  const variableOf = (name: string) => environment[own + name] ? own + name : `OTEL_EXPORTER_OTLP_${name}`
  const valueOf = (name: string) => environment[variableOf(name)]
  const protocol = valueOf('PROTOCOL')
  if (protocol && !protocol.startsWith('http/')) {
    throw new TypeError(
      `${
        variableOf('PROTOCOL')
      }: expected "http/protobuf" or "http/json", received "${protocol}": ${signal} go over HTTP; set ${own}PROTOCOL=http/protobuf, and ${own}ENDPOINT to the port for HTTP, usually 4318`
    )
  }
  const url = endpointOf(environment, signal)
  if (url === null || !/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
    throw new TypeError(`${variableOf('ENDPOINT')}: expected an address such as "http://127.0.0.1:4318"`)
  return { url,
    headers: { ...readPairs(environment.OTEL_EXPORTER_OTLP_HEADERS), ...readPairs(environment[`${own}HEADERS`]) },
    timeoutMs: millisecondsOf(valueOf('TIMEOUT'), DEFAULT_TIMEOUT_MS), isCompressed: valueOf('COMPRESSION') === 'gzip',
    isJson: protocol === 'http/json',
    ...valueOf('CERTIFICATE') && { ca: readCertificate(variableOf('CERTIFICATE'), String(valueOf('CERTIFICATE'))) } }
}

/** @throws {TypeError} */
function readCertificate (variable: string, file: string) {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new TypeError(`${variable}: expected a file that can be read, received ${file} (${errorReason(error)})`, {
      cause: error
    })
  }
}

/** Null: nobody has named one */
function endpointOf (environment: Environment, signal: 'metrics' | 'logs'): string | null {
  const own = environment[`OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_ENDPOINT`]
  const base = environment.OTEL_EXPORTER_OTLP_ENDPOINT
  return own || (base ? `${base.replace(/\/+$/, '')}/v1/${signal}` : null)
}

/** Reads pairs as W3C baggage writes them: `a=1,b=two%20words`. */
function readPairs (text: string | undefined = ''): Record<string, string> {
  return Object.fromEntries(text.split(',').flatMap((pair) => {
    const at = pair.indexOf('=')
    const value = pair.slice(at + 1).trim()
    // URIError: a percent sign that means itself.
    return at > 0 ? [[pair.slice(0, at).trim(), attempt(() => decodeURIComponent(value), value)]] : []
  }))
}

function millisecondsOf (text: string | undefined, fallback: number) {
  const number = Number(text)
  return text && number > 0 && number <= MAX_MS ? number : fallback
}
