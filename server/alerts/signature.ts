import { createHmac } from 'node:crypto'

const PREFIX = 'whsec_'

/**
 * Makes the headers that tell a receiver who has sent a message, and when: Standard Webhooks, v1.
 * @param secret `whsec_` and base64, or any text
 */
export function signMessage ({ id, time, body }: {
  /** the same for every try */
  id: string,
  /** wall, ms */
  time: number,
  body: string
}, secret: string): Record<string, string> {
  const timestamp = String(Math.floor(time / 1000))
  const digest = createHmac('sha256', keyOf(secret)).update(`${id}.${timestamp}.${body}`).digest('base64')
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${digest}` }
}

function keyOf (secret: string) {
  return secret.startsWith(PREFIX) ? Buffer.from(secret.slice(PREFIX.length), 'base64') : Buffer.from(secret)
}
