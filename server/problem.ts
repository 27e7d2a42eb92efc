import { DeckError, type ErrorCode } from './errors.ts'
import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

/**
 * Errors as RFC 9457 problem details. Works on a bare ServerResponse, since the guard refuses before express exists.
 */
type Problem = { type: string, title: string, status: number, detail: string, code: string } & Record<string, unknown>

export const PROBLEM_TYPE = 'application/problem+json; charset=utf-8'

/** Seconds after which another try makes sense. */
export const RETRY_AFTER_S = 5

/** Errors of body-parser and express, by our codes. */
const FOREIGN_TYPES: Readonly<Record<string, [ErrorCode, string]>> = Object.freeze({
  'entity.parse.failed': ['invalid-json', 'The body is not valid JSON'],
  'entity.too.large': ['payload-too-large', 'The body is too large'],
  'parameters.too.many': ['payload-too-large', 'The form has too many fields'],
  'encoding.unsupported': ['unsupported-media-type', 'Content-Encoding: expected none'],
  'charset.unsupported': ['unsupported-media-type', 'Content-Type: expected the charset utf-8'],
  'request.size.invalid': ['bad-request', 'The length of the body differs from its Content-Length'],
  'request.aborted': ['bad-request', 'The request was cut off']
})

/**
 * Turns any error into one of the table. An unknown error becomes `internal` without its text, which may hold paths,
 * SQL or secrets.
 */
export function toDeckError (error: unknown): DeckError {
  if (error instanceof DeckError) return error
  const { type, status } = Object(error)
  const known = FOREIGN_TYPES[type]
  if (known) return new DeckError(known[0], known[1], { cause: error })
  // express throws these for a path that does not decode, such as /%ZZ
  if (status === 400) return new DeckError('bad-request', 'The request is malformed', { cause: error })
  return new DeckError('internal', 'Internal error; see the log of the master', { cause: error })
}

export function toProblem ({ code, title, status, message, details }: DeckError): Problem {
  return { ...details, type: `urn:clusterdeck:problem:${code}`, title, status, detail: message, code }
}

export function sendProblem (res: ServerResponse, error: unknown) {
  const deckError = toDeckError(error)
  // The status line has been sent, so only a cut connection can show that the answer is not complete.
  if (res.headersSent) {
    res.destroy()
    return
  }
  const body = JSON.stringify(toProblem(deckError))
  for (const [name, value] of Object.entries(headersOf(deckError))) res.setHeader(name, value)
  res.statusCode = deckError.status
  res.setHeader('Content-Type', PROBLEM_TYPE)
  res.setHeader('Content-Length', Buffer.byteLength(body))
  res.end(body)
}

/** Refuses an upgrade: there is no ServerResponse, only the socket. */
export function refuseUpgrade (socket: Duplex, error: unknown) {
  const deckError = toDeckError(error)
  const body = JSON.stringify(toProblem(deckError))
  const headers = { ...headersOf(deckError), 'Content-Type': PROBLEM_TYPE, 'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff', Connection: 'close' }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  // A client that resets during its refusal needs no handling.
  socket.on('error', () => socket.destroy())
  socket.end(`HTTP/1.1 ${deckError.status} Refused\r\n${lines.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy())
}

export function headersOf ({ code, status, details }: DeckError): Record<string, string> {
  if (code === 'unauthenticated') return { 'WWW-Authenticate': 'Bearer realm="clusterdeck"' }
  if (code === 'method-not-allowed') return { Allow: String(details.allow) }
  if (status === 503) return { 'Retry-After': String(RETRY_AFTER_S) }
  return {}
}
