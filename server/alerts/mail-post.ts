import { once } from 'node:events'
import { DEFAULT_MAIL_PORT } from '../config/alert-kinds.ts'
import { errorCode } from '../errors.ts'
import { isLoopback } from '../system/loopback.ts'
import type { Answer, Post } from './sender.ts'

/** Sends mail by an SMTP server. A password never goes over a network unencrypted. */
export function createMailPost (
  { host, port = DEFAULT_MAIL_PORT, user, password, from, to }: { host: string, port?: number, user?: string,
    password?: string, from: string, to: string[] },
  { load = () => import('nodemailer') }: {
    load?: () => Promise<Pick<typeof import('nodemailer'), 'createTransport'>>
  } = {}
): Post {
  return async ({ id, content }, { patienceMs, signal }) => {
    let transport
    try {
      const { createTransport } = await load()
      transport = createTransport({
        host,
        port,
        secure: port === 465,
        requireTLS: user !== undefined && !isLoopback(host),
        // A mail server on this machine seldom has a certificate that somebody has signed.
        tls: { rejectUnauthorized: !isLoopback(host) },
        ...(user !== undefined && { auth: { user, pass: password } }),
        connectionTimeout: patienceMs,
        greetingTimeout: patienceMs,
        socketTimeout: patienceMs,
        // The content is text: it leads to no file and no address.
        disableFileAccess: true,
        disableUrlAccess: true
      })
      const sent = transport.sendMail({ from: { name: 'clusterdeck', address: from }, to, ...Object(content),
        messageId: `<${id}@clusterdeck>`, headers: { 'Auto-Submitted': 'auto-generated' } })
      const { response } = await Promise.race([sent,
        rejectAt(AbortSignal.any([signal, AbortSignal.timeout(2 * patienceMs)]))])
      return { status: Number.parseInt(response, 10) || null, error: null, canRetry: false }
    } catch (error) {
      return toAnswer(error)
    } finally {
      transport?.close()
    }
  }
}

async function rejectAt (signal: AbortSignal): Promise<never> {
  if (!signal.aborted) await once(signal, 'abort')
  throw signal.reason
}

/** The message of an error may hold what the server has said, and with it an address or a name. */
function toAnswer (error: unknown): Answer {
  const { responseCode } = Object(error)
  const status = Number.isInteger(responseCode) ? responseCode : null
  const code = errorCode(error) ?? 'Error'
  return { status, error: REASONS[code] ?? (status === null ? code : `answered ${status}`),
    canRetry: status === null ? code !== 'EAUTH' : status < 500 }
}

/** Codes of nodemailer. */
const REASONS: Record<string, string> = { EAUTH: 'the server refused user or password',
  ETLS: 'the server offers no encryption', EDNS: 'the server has no address', ETIMEDOUT: 'no answer in time' }
