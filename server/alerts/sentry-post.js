import { postBody } from './http-post.js'
import { envelopeOf, receiverOf } from './sentry.js'

/**
 * Sends an envelope to Sentry, or to what takes the same.
 * @param {{ dsn: string }} target
 * @param {{ fetch?: typeof globalThis.fetch }} [options]
 * @returns {import('./sender.js').Post}
 */
export function createSentryPost ({ dsn }, { fetch = globalThis.fetch } = {}) {
  const { url, key } = receiverOf(dsn)
  return ({ id, content }, how) => {
    // The id is the same for each try, so that Sentry does not count a try twice whose answer was lost.
    const event = { id: id.replace(/\W|^msg_/g, ''), payload: String(content), at: how.time }
    const headers = { 'content-type': 'application/x-sentry-envelope', 'x-sentry-auth': `Sentry sentry_version=7, sentry_client=clusterdeck, sentry_key=${key}` }
    return postBody({ url, headers, body: envelopeOf(event) }, how, fetch)
  }
}
