import { z } from 'zod'
import { parseDuration } from '../config/duration.ts'
import { DeckError } from '../errors.ts'
import { APPS_FIELD, appsWithin, type Apps } from '../host/api-apps.ts'
import { operation, type Resource } from '../api/endpoint.ts'
import { NUMBER, PERSON_NAME, ROLE, TIME, toIso } from '../api/fields.ts'
import { readBy } from '../api/input.ts'
import { tokenEvent, type TokenRegistry } from './api-tokens.ts'
import type { IncomingMessage } from 'node:http'
import type { EventStream } from '../events/stream.ts'
import type { Auth, Person, Role } from '../api/roles.ts'

const MIN_TTL_MS = 1000
const MAX_TTL_MS = 30 * 24 * 60 * 60_000

const ONE_LINE = /^[^\u0000-\u001f\u007f-\u009f]{1,200}$/u

const LINK_BODY = z.strictObject({ name: PERSON_NAME.optional(), role: ROLE.optional(),
  ttl: z.string().transform(readBy(parseDuration)).pipe(z.int().min(MIN_TTL_MS).max(MAX_TTL_MS)).optional().meta({
    description: 'the longest time of its session: a duration from 1s to 30d; default: admin.sessionTtlMs',
    as: { type: 'string', pattern: '^[1-9]\\d{0,2}m$' }
  }),
  from: z.string().regex(ONE_LINE).optional().describe(
    'the deck whose dashboard the person comes from, for the history'
  ) }).meta({ examples: [{ name: 'ada', role: 'viewer' }] })

const HOST_LINK_BODY = LINK_BODY.extend({ apps: APPS_FIELD }).meta({
  examples: [{ name: 'ada', role: 'viewer', apps: ['shop'] }]
})

/**
 * One-time sign-in links. Whoever is named gets an entry in the list of tokens, which ends their sessions when it is
 * revoked. `urlFor`: the URL of this site for the sender; `apps`: of a host.
 */
export function signInLinkResources (
  { tokens, sessions, events, links, urlFor, now, apps = null }: { tokens: Pick<TokenRegistry, 'create'>,
    sessions: { ttlMs: number }, events: Pick<EventStream, 'publish'>,
    links: { create: (person: Person, from?: string | null) => { code: string, expiresAt: number } }, now: () => number,
    urlFor: (req: IncomingMessage) => string, apps?: Apps | null }
): Record<string, Resource> {
  return {
    '/sign-in-links': {
      POST: operation({ name: 'createSignInLink', summary: 'Creates a one-time sign-in link',
        description: 'A session can make links for viewers with a name alone, and for no longer than it lasts itself.',
        role: 'admin', cli: 'clusterdeck open', body: apps ? HOST_LINK_BODY : LINK_BODY, status: 201, isSecret: true,
        problems: ['name-taken', 'not-possible'],
        answer: z.strictObject({ url: z.url(), expiresAt: TIME.describe('until when the link can be opened'),
          until: TIME.describe('when the session that it opens ends, at the latest'),
          token: NUMBER.nullable().describe('its entry in the list of tokens; null: it is for nobody in particular') })
          .meta({ id: 'SignInLink' }), handle ({ auth, body, req }) {
        const { name, role = 'admin', ttl, from } = body
        checkMaker(auth, { name, role })
        // The link ends with the token that made it.
        const until = Math.min(auth.until ?? Infinity, now() + sessions.ttlMs, now() + (ttl ?? Infinity))
        const person = { role, until, apps: apps ? appsWithin(apps, auth, body) : null }
        const token = name === undefined ? auth.token : enterName(auth, { ...person, name })
        const { code, expiresAt } = links.create({ ...person, name: name ?? auth.name, token }, from)
        return {
          body: { url: `${urlFor(req)}/sign-in?code=${code}`, expiresAt: toIso(expiresAt), until: toIso(until),
            token: name === undefined ? null : token }
        }
      } })
    }
  }

  function enterName ({ actor, token: createdWith }: Auth,
    { until, ...person }: { name: string, role: Role, until: number, apps: readonly string[] | null })
  {
    const { token } = tokens.create({ ...person, ttlMs: until - now(), createdBy: actor, createdWith, kind: 'link' })
    events.publish(tokenEvent('token.created', actor, token))
    return token.id
  }
}

/**
 * A session that could make links like itself would renew itself for ever.
 * @throws {DeckError} forbidden
 */
function checkMaker ({ via }: Auth, { name, role }: { name?: string, role: Role }) {
  if (via === 'token' || (via === 'session' && role === 'viewer' && name !== undefined)) return
  throw new DeckError('forbidden',
    'A sign-in link requires a token, not a session, unless it is for a viewer with a name')
}
