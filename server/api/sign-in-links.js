import { z } from 'zod'
import { parseDuration } from '../config/duration.js'
import { APPS_FIELD, appsWithin } from './apps.js'
import { operation } from './endpoint.js'
import { PERSON_NAME, ROLE, TIME } from './fields.js'
import { readBy } from './input.js'

const MIN_TTL_MS = 1000
const MAX_TTL_MS = 30 * 24 * 60 * 60_000

// eslint-disable-next-line no-control-regex
const ONE_LINE = /^[^\u0000-\u001f\u007f-\u009f]{1,200}$/u

const LINK_BODY = z.strictObject({
  name: PERSON_NAME.optional(),
  role: ROLE.optional(),
  ttl: z.string().transform(readBy(parseDuration)).pipe(z.int().min(MIN_TTL_MS).max(MAX_TTL_MS)).optional()
    .meta({
      description: 'the longest time of its session: a duration from 1s to 30d; default: admin.sessionTtlMs',
      as: { type: 'string', pattern: '^[1-9]\\d{0,2}m$' }
    }),
  from: z.string().regex(ONE_LINE).optional().describe('the deck whose dashboard the person comes from, for the history')
}).meta({ examples: [{ name: 'ada', role: 'viewer' }] })

const HOST_LINK_BODY = LINK_BODY.extend({ apps: APPS_FIELD }).meta({ examples: [{ name: 'ada', role: 'viewer', apps: ['shop'] }] })

/**
 * One-time sign-in links for holders of a token (`clusterdeck open`). A session cannot make one, as it could then renew
 * itself for ever.
 * @param {{
 *   links: { create: (person: import('./roles.js').Person, from?: string | null) => { code: string, expiresAt: number } },
 *   now: () => number,
 *   urlFor: (req: import('node:http').IncomingMessage) => string,
 *   apps?: import('./apps.js').Apps | null
 * }} parts `urlFor`: the URL of this site for the sender; `apps`: of a host
 * @returns {Record<string, import('./endpoint.js').Resource>}
 */
export function signInLinkResources ({ links, urlFor, now, apps = null }) {
  return {
    '/sign-in-links': {
      POST: operation({
        name: 'createSignInLink',
        summary: 'Creates a one-time sign-in link',
        role: 'admin',
        byToken: 'A sign-in link',
        cli: 'clusterdeck open',
        body: apps ? HOST_LINK_BODY : LINK_BODY,
        status: 201,
        isSecret: true,
        answer: z.strictObject({ url: z.url(), expiresAt: TIME }).meta({ id: 'SignInLink' }),
        handle ({ auth, body, req }) {
          const { name = auth.name, role = 'admin', ttl, from } = body
          // The link ends with the token that made it.
          const { code, expiresAt } = links.create({
            name,
            role,
            token: auth.token,
            until: earliestOf(auth.until, ttl === undefined ? null : now() + ttl),
            ...(apps && { apps: appsWithin(apps, auth, body) })
          }, from)
          return { body: { url: `${urlFor(req)}/sign-in?code=${code}`, expiresAt: new Date(expiresAt).toISOString() } }
        }
      })
    }
  }
}

/** @param {(number | null)[]} times ms since the epoch; null: never @returns {number | null} */
function earliestOf (...times) {
  const ends = times.filter((each) => each !== null)
  return ends.length > 0 ? Math.min(...ends) : null
}
