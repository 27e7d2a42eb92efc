import { readFileSync } from 'node:fs'
import { errorReason, errorText } from '../errors.js'

/**
 * Where a collector of OpenTelemetry is, by the variables that its SDKs read.
 * See https://opentelemetry.io/docs/specs/otel/protocol/exporter/ and …/configuration/sdk-environment-variables/.
 * @typedef {Record<string, string | undefined>} Environment
 * @typedef {object} OtlpTarget
 * @property {string} url
 * @property {Record<string, string>} headers
 * @property {number} timeoutMs
 * @property {boolean} isCompressed
 * @property {boolean} isJson  else protobuf
 * @property {string} [ca]  PEM
 *
 * @typedef {object} OtlpSettings
 * @property {OtlpTarget | null} metrics  null: they are not wanted
 * @property {OtlpTarget | null} logs
 * @property {Record<string, string>} resource  as the environment names this service
 * @property {number} intervalMs  of metrics
 * @property {string[]} problems  why something that is wanted cannot be sent
 */

const SIGNALS = /** @type {const} */ (['metrics', 'logs'])
const DEFAULT_TIMEOUT_MS = 10_000
const DEFAULT_INTERVAL_MS = 60_000
const MIN_INTERVAL_MS = 1000
const MAX_MS = 2 ** 31 - 1

/** @param {Environment} environment @returns {OtlpSettings} */
export function readOtlpSettings (environment) {
  /** @type {string[]} */
  const problems = []
  const [metrics, logs] = SIGNALS.map((signal) => {
    try {
      return isWanted(environment, signal) ? readTarget(environment, signal) : null
    } catch (error) {
      problems.push(errorText(error))
      return null
    }
  })
  return {
    metrics,
    logs,
    resource: { ...readPairs(environment.OTEL_RESOURCE_ATTRIBUTES), ...environment.OTEL_SERVICE_NAME && { 'service.name': environment.OTEL_SERVICE_NAME } },
    intervalMs: Math.max(MIN_INTERVAL_MS, millisecondsOf(environment.OTEL_METRIC_EXPORT_INTERVAL, DEFAULT_INTERVAL_MS)),
    problems: [...new Set(problems)]
  }
}

/** @param {Environment} environment @param {'metrics' | 'logs'} signal */
function isWanted (environment, signal) {
  const isDisabled = environment.OTEL_SDK_DISABLED?.toLowerCase() === 'true'
  const exporters = environment[`OTEL_${signal.toUpperCase()}_EXPORTER`]?.split(',').map((each) => each.trim()) ?? ['otlp']
  return !isDisabled && exporters.includes('otlp') && endpointOf(environment, signal) !== null
}

/** @param {Environment} environment @param {'metrics' | 'logs'} signal @returns {OtlpTarget} @throws {TypeError} names the variable that is wrong, and never its value where that may be a secret */
function readTarget (environment, signal) {
  const own = `OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_`
  const variableOf = (/** @type {string} */ name) => environment[own + name] ? own + name : `OTEL_EXPORTER_OTLP_${name}`
  const valueOf = (/** @type {string} */ name) => environment[variableOf(name)]
  const protocol = valueOf('PROTOCOL')
  if (protocol && !protocol.startsWith('http/')) {
    throw new TypeError(`${variableOf('PROTOCOL')}: expected "http/protobuf" or "http/json", received "${protocol}": ${signal} go over HTTP; set ${own}PROTOCOL=http/protobuf, and ${own}ENDPOINT to the port for HTTP, usually 4318`)
  }
  const url = endpointOf(environment, signal)
  if (url === null || !/^https?:$/.test(protocolOf(url))) throw new TypeError(`${variableOf('ENDPOINT')}: expected an address such as "http://127.0.0.1:4318"`)
  return {
    url,
    headers: { ...readPairs(environment.OTEL_EXPORTER_OTLP_HEADERS), ...readPairs(environment[`${own}HEADERS`]) },
    timeoutMs: millisecondsOf(valueOf('TIMEOUT'), DEFAULT_TIMEOUT_MS),
    isCompressed: valueOf('COMPRESSION') === 'gzip',
    isJson: protocol === 'http/json',
    ...valueOf('CERTIFICATE') && { ca: readCertificate(variableOf('CERTIFICATE'), String(valueOf('CERTIFICATE'))) }
  }
}

/** @param {string} variable @param {string} file @throws {TypeError} */
function readCertificate (variable, file) {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new TypeError(`${variable}: expected a file that can be read, received ${file} (${errorReason(error)})`, { cause: error })
  }
}

/** @param {Environment} environment @param {'metrics' | 'logs'} signal @returns {string | null} null: nobody has named one */
function endpointOf (environment, signal) {
  const own = environment[`OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_ENDPOINT`]
  const base = environment.OTEL_EXPORTER_OTLP_ENDPOINT
  return own || (base ? `${base.replace(/\/+$/, '')}/v1/${signal}` : null)
}

/** @param {string} url */
function protocolOf (url) {
  try {
    return new URL(url).protocol
  } catch {
    return ''
  }
}

/** Reads pairs as W3C baggage writes them: `a=1,b=two%20words`. @param {string | undefined} text @returns {Record<string, string>} */
function readPairs (text = '') {
  return Object.fromEntries(text.split(',').flatMap((pair) => {
    const at = pair.indexOf('=')
    return at > 0 ? [[pair.slice(0, at).trim(), decode(pair.slice(at + 1).trim())]] : []
  }))
}

/** @param {string} text */
function decode (text) {
  try {
    return decodeURIComponent(text)
  } catch {
    // URIError: a percent sign that means itself.
    return text
  }
}

/** @param {string | undefined} text @param {number} fallback */
function millisecondsOf (text, fallback) {
  const number = Number(text)
  return text && number > 0 && number <= MAX_MS ? number : fallback
}
