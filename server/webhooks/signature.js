import { createHmac } from 'node:crypto'

const PREFIX = 'whsec_'

/**
 * The headers by which a receiver knows who has sent a message, and that it is no old one: Standard Webhooks, v1.
 * @param {object} message
 * @param {string} message.id the same at every try
 * @param {number} message.time wall, ms
 * @param {string} message.body
 * @param {string} secret `whsec_` and base64, or any text
 * @returns {Record<string, string>}
 */
export function signMessage ({ id, time, body }, secret) {
  const timestamp = String(Math.floor(time / 1000))
  const digest = createHmac('sha256', keyOf(secret)).update(`${id}.${timestamp}.${body}`).digest('base64')
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${digest}` }
}

/** @param {string} secret */
function keyOf (secret) {
  return secret.startsWith(PREFIX) ? Buffer.from(secret.slice(PREFIX.length), 'base64') : Buffer.from(secret)
}
