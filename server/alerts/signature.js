import { createHmac } from 'node:crypto'

const PREFIX = 'whsec_'

/**
 * Makes the headers that tell a receiver who has sent a message, and when: Standard Webhooks, v1.
 * @param {object} message
 * @param {string} message.id the same for every try
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
