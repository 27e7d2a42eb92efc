import { once } from 'node:events'
import { DEFAULT_MAIL_PORT } from '../config/alert-kinds.js'
import { errorCode } from '../errors.js'
import { isLoopback } from '../system/loopback.js'

/**
 * Sends mail by an SMTP server. A password never goes over a network unencrypted.
 * @param {{ host: string, port?: number, user?: string, password?: string, from: string, to: string[] }} target
 * @param {{ load?: () => Promise<Pick<typeof import('nodemailer'), 'createTransport'>> }} [options]
 * @returns {import('./sender.js').Post}
 */
export function createMailPost ({ host, port = DEFAULT_MAIL_PORT, user, password, from, to }, { load = () => import('nodemailer') } = {}) {
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
      const sent = transport.sendMail({ from: { name: 'clusterdeck', address: from }, to, ...Object(content), messageId: `<${id}@clusterdeck>`, headers: { 'Auto-Submitted': 'auto-generated' } })
      const { response } = await Promise.race([sent, rejectAt(AbortSignal.any([signal, AbortSignal.timeout(2 * patienceMs)]))])
      return { status: Number.parseInt(response, 10) || null, error: null, canRetry: false }
    } catch (error) {
      return toAnswer(error)
    } finally {
      transport?.close()
    }
  }
}

/** @param {AbortSignal} signal @returns {Promise<never>} */
async function rejectAt (signal) {
  if (!signal.aborted) await once(signal, 'abort')
  throw signal.reason
}

/** The message of an error may hold what the server has said, and with it an address or a name. @param {unknown} error @returns {import('./sender.js').Answer} */
function toAnswer (error) {
  const { responseCode } = Object(error)
  const status = Number.isInteger(responseCode) ? responseCode : null
  const code = errorCode(error) ?? 'Error'
  return { status, error: REASONS[code] ?? (status === null ? code : `answered ${status}`), canRetry: status === null ? code !== 'EAUTH' : status < 500 }
}

/** Codes of nodemailer. @type {Record<string, string>} */
const REASONS = { EAUTH: 'the server refused user or password', ETLS: 'the server offers no encryption', EDNS: 'the server has no address', ETIMEDOUT: 'no answer in time' }
