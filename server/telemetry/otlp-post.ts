import http from 'node:http'
import https from 'node:https'
import { gzipSync } from 'node:zlib'
import { attempt, errorCode } from '../errors.ts'
import { toProtobuf } from './otlp-protobuf.ts'
import type { OtlpTarget } from './otlp-settings.ts'

/**
 * `error`: null where the collector has taken all of it; `rejected`: how many it has refused of what it has taken;
 * `isTooLarge`: it may take a part.
 */
export type Outcome = { error: string | null, canRetry: boolean, retryAfterMs: number | null, rejected: number,
  isTooLarge?: boolean }

/** The answer of a collector is read up to here. */
const MAX_ANSWER_BYTES = 64 * 1024
/** See https://opentelemetry.io/docs/specs/otlp/#failures-1. */
const RETRYABLE = [429, 502, 503, 504]
const TOO_LARGE = 413
const NOTHING_REJECTED = Object.freeze({ retryAfterMs: null, rejected: 0 })

/** Posts a request of OTLP once. It never throws, and says nothing that may hold a secret. */
export function postOtlp ({ url, headers, timeoutMs, isCompressed, isJson, ca }: OtlpTarget, content: object,
  { signal }: { signal?: AbortSignal } = {}): Promise<Outcome>
{
  const plain = isJson ? Buffer.from(JSON.stringify(content)) : toProtobuf(content)
  const body = isCompressed ? gzipSync(plain) : plain
  const { request } = url.startsWith('https:') ? https : http
  return new Promise((resolve) => {
    try {
      const sent = request(url, { method: 'POST',
        headers: { 'user-agent': 'clusterdeck', ...headers,
          'content-type': isJson ? 'application/json' : 'application/x-protobuf', 'content-length': body.length,
          ...isCompressed && { 'content-encoding': 'gzip' } }, ca, signal })
      // The limit is for the whole answer: one that comes byte by byte never leaves its socket idle.
      const timer = setTimeout(
        () => sent.destroy(Object.assign(new Error(), { code: `no answer within ${timeoutMs / 1000} s` })),
        timeoutMs
      ).unref()
      sent.on('close', () => clearTimeout(timer))
      sent.on('error', (error) =>
        resolve({ ...NOTHING_REJECTED, error: errorCode(error) ?? error.name, canRetry: true }))
      sent.on('response', (response) => resolve(readAnswer(response)))
      sent.end(body)
    } catch (error) {
      // ERR_INVALID_CHAR: HTTP does not allow such a header.
      resolve({ ...NOTHING_REJECTED, error: errorCode(error) ?? 'Error', canRetry: false })
    }
  })
}

async function readAnswer (response: http.IncomingMessage): Promise<Outcome> {
  const { statusCode: status = 0, headers } = response
  let text = ''
  try {
    for await (const chunk of response.setEncoding('utf8')) if ((text += chunk).length > MAX_ANSWER_BYTES) break
  } catch {
    // The status is known: what the rest of the answer would have said is not.
  }
  if (status < 200 || status > 299) {
    const seconds = Number(headers['retry-after'])
    return { error: `answered ${status}`, canRetry: RETRYABLE.includes(status),
      retryAfterMs: seconds > 0 ? seconds * 1000 : null, rejected: 0, isTooLarge: status === TOO_LARGE }
  }
  return { ...NOTHING_REJECTED, error: null, canRetry: false, rejected: rejectedOf(text) }
}

/** What a collector has refused in part is only told where it answers in JSON. `text`: of an Export…ServiceResponse. */
function rejectedOf (text: string) {
  // SyntaxError: it has nothing to say, or says it in another format.
  return attempt(() => {
    const { rejectedDataPoints, rejectedLogRecords } = Object(JSON.parse(text).partialSuccess)
    return Number(rejectedDataPoints ?? rejectedLogRecords ?? 0)
  }, 0)
}
