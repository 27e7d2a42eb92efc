import { createHmac } from 'node:crypto'
import { errorCode } from '../errors.ts'
import type { Answer, Post } from './sender.ts'

const PREFIX = 'whsec_'

/** Posts JSON to an address, signed where the receiver knows a secret. */
export function createHttpPost (
  { url, secret, headers: own = {} }: { url: string, secret?: string, headers?: Record<string, string> },
  { fetch }: { fetch?: typeof globalThis.fetch } = {}
): Post {
  // By one spelling, so that each is sent once.
  const named = Object.entries(own).map(([name, value]) => [name.toLowerCase(), value])
  return ({ id, content }, how) => {
    const body = String(content)
    const headers = { 'content-type': 'application/json', ...Object.fromEntries(named),
      ...(secret && signMessage({ id, time: how.time, body }, secret)) }
    return sendRequest({ url, headers, body }, how, fetch)
  }
}

/** Never throws, and says nothing that may hold a secret. */
export async function sendRequest (
  { url, method = 'POST', headers = {}, body }: { url: string, method?: 'GET' | 'POST',
    headers?: Record<string, string>, body?: string },
  { patienceMs, signal }: Pick<Parameters<Post>[1], 'patienceMs' | 'signal'>,
  fetch: typeof globalThis.fetch = globalThis.fetch
): Promise<Answer> {
  try {
    const response = await fetch(url, {
      method,
      // A redirect would lead to an address that nobody has configured.
      redirect: 'manual',
      headers: { 'user-agent': 'clusterdeck', ...headers },
      body,
      signal: AbortSignal.any([AbortSignal.timeout(patienceMs), signal])
    })
    // The answer is not read: the address may lead to a server of this network, whose answers nobody here is to see.
    await response.body?.cancel()
    const { status, ok } = response
    return { status, error: ok ? null : `answered ${status}`,
      canRetry: status >= 500 || status === 408 || status === 429 }
  } catch (error) {
    return { status: null, error: failureText(error, patienceMs), canRetry: true }
  }
}

/** The message of an error may hold the address, and with it a secret. */
function failureText (error: unknown, patienceMs: number) {
  if (!(error instanceof Error)) return 'Error'
  return error.name === 'TimeoutError'
    ? `no answer within ${patienceMs / 1000} s`
    : errorCode(error.cause) ?? error.name
}

/**
 * Makes the headers that tell a receiver who has sent a message, and when: Standard Webhooks, v1.
 * @param secret `whsec_` and base64, or any text
 */
function signMessage ({ id, time, body }: {
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
