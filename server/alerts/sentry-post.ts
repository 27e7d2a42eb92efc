import { postBody } from './http-post.ts'
import { envelopeOf, receiverOf } from './sentry.ts'
import type { Post } from './sender.ts'

/** Sends an envelope to Sentry, or to what takes the same. */
export function createSentryPost ({ dsn }: { dsn: string },
  { fetch = globalThis.fetch }: { fetch?: typeof globalThis.fetch } = {}): Post
{
  const { url, key } = receiverOf(dsn)
  return ({ id, content }, how) => {
    // The id is the same for each try, so that Sentry does not count a try twice whose answer was lost.
    const event = { id: id.replace(/\W|^msg_/g, ''), payload: String(content), at: how.time }
    const headers = { 'content-type': 'application/x-sentry-envelope',
      'x-sentry-auth': `Sentry sentry_version=7, sentry_client=clusterdeck, sentry_key=${key}` }
    return postBody({ url, headers, body: envelopeOf(event) }, how, fetch)
  }
}
