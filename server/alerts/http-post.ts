import { createHmac } from 'node:crypto'
import { errorCode } from '../errors.ts'
import type { Answer, Post } from './sender.ts'

const PREFIX = 'whsec_'

/** Posts JSON to an address, signed where the receiver knows a secret. */
export function createHttpPost ({ url, secret }: { url: string, secret?: string },
  { fetch = globalThis.fetch }: { fetch?: typeof globalThis.fetch } = {}): Post
{
  return ({ id, content }, how) => {
    const body = String(content)
    const headers = { 'content-type': 'application/json',
      ...(secret && signMessage({ id, time: how.time, body }, secret)) }
    return postBody({ url, headers, body }, how, fetch)
  }
}

export async function postBody ({ url, headers, body }: { url: string, headers: Record<string, string>, body: string },
  { patienceMs, signal }: Parameters<Post>[1], fetch: typeof globalThis.fetch): Promise<Answer>
{
  try {
    const response = await fetch(url, {
      method: 'POST',
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
