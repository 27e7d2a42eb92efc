import { z } from 'zod'
import { parseDuration } from '../config/duration.ts'
import { DeckError } from '../errors.ts'
import { APPS_FIELD, appsWithin, type Apps } from '../host/api-apps.ts'
import { operation, type Resource } from '../api/endpoint.ts'
import { ACTOR, COUNT, listOf, NUMBER, PERSON_NAME, ROLE, TIME, toIso } from '../api/fields.ts'
import { readBy } from '../api/input.ts'
import { checkMatch, IF_MATCH, lastOf, tagOf, type Past } from '../api/preconditions.ts'
import { doerOf, mayUse, roleText, type Auth, type Person } from '../api/roles.ts'
import type { Token as StoredToken } from '../../db/tokens.ts'
import type { EventStream, NewEvent } from '../events/stream.ts'

const DAY_MS = 24 * 60 * 60_000
const MIN_TTL_MS = 60_000
const MAX_TTL_MS = 3650 * DAY_MS
const DEFAULT_TTL_MS = 90 * DAY_MS

export type Token = z.infer<typeof TOKEN>
const TOKEN = z.strictObject({ id: NUMBER, name: z.string(), role: ROLE, createdAt: TIME, createdBy: ACTOR,
  createdWith: NUMBER.nullable().describe(
    'the token that created it, and with which it ends; null: the token of the data folder'
  ), expiresAt: TIME, isExpired: z.boolean(),
  kind: z.enum(['token', 'link']).describe(
    '`link`: it stands for whoever was sent a sign-in link; nobody has its secret'
  ), lastUsedAt: TIME.nullable().describe('null: never'),
  lastUsedFrom: z.string().nullable().describe('the address; behind a proxy, that of the proxy'),
  sessions: COUNT.describe('how many browsers are signed in by it'),
  apps: z.array(z.string()).nullable().optional().describe('of a host: the apps that its role is for; null: all') })
  .meta({ id: 'Token' })

const TOKEN_BODY = z.strictObject({ name: PERSON_NAME, role: ROLE,
  ttl: z.string().transform(readBy(parseDuration)).pipe(z.int().min(MIN_TTL_MS).max(MAX_TTL_MS)).optional().meta({
    description:
      'how long it may be used: a duration from 1m to 3650d, such as 90d (the default), and no longer than the token that creates it',
    as: { type: 'string', pattern: '^[1-9]\\d{0,2}d$' }
  }) }).meta({ examples: [{ name: 'ada', role: 'operator', ttl: '30d' }] })

const HOST_TOKEN_BODY = TOKEN_BODY.extend({ apps: APPS_FIELD }).meta({
  examples: [{ name: 'ci', role: 'operator', apps: ['shop'] }]
})

/** What the tokens of this deck are kept in, see admin/tokens.js. */
export type TokenRegistry = {
  find: (secret: string) => StoredToken | null,
  isValid: (id: number) => boolean,
  /** newest first, also those that have expired; throws history-unavailable */
  list: () => StoredToken[],
  /** the secret is nowhere else; throws name-taken, not-possible, history-unavailable */
  create: (wanted: WantedToken) => { token: StoredToken, secret: string },
  /** with all that was made by it; throws not-found, history-unavailable */
  revoke: (id: number, actor: string) => { token: StoredToken, made: StoredToken[] },
  revokedBy: (id: number) => { name: string, actor: string } | null,
  /** `who`: by their token, or by a session of it */
  noteUse: (who: Pick<Person, 'token' | 'name'>, from: string) => void,
  /** of the token of the data folder, since this master has started */
  lastUseByOwner: () => { at: number, from: string } | null,
  onRevoked: (listener: () => void) => () => void
}
export type WantedToken =
  & Pick<StoredToken, 'name' | 'role' | 'createdBy' | 'createdWith' | 'apps'>
  & { ttlMs: number, kind?: StoredToken['kind'] }
/** how many browsers are signed in, by token; null: by that of the data folder */
export type Sessions = { countByToken: () => Map<number | null, number> }

/** Tokens for people and scripts, each with a name and a role. */
export function tokenResources ({ tokens, sessions, history, events, now, apps = null }: {
  tokens: TokenRegistry,
  sessions: Sessions,
  history: Past,
  events: Pick<EventStream, 'publish'>,
  now: () => number,
  /** of a host */
  apps?: Apps | null
}): Record<string, Resource> {
  return {
    '/tokens': {
      GET: operation({ name: 'listTokens', summary: 'Lists the tokens, newest first, without their secrets',
        role: 'admin', cli: 'clusterdeck tokens', hasTag: true, answer: listOf(TOKEN), handle ({ auth }) {
        const items = tokensOf(auth, tokens.list())
        return { headers: { ETag: tagOf(tokensTag(items)) }, body: { items: shownTokens(items) } }
      } }),
      POST: operation({ name: 'createToken', summary: 'Creates a token; only this answer holds its secret',
        role: 'admin', byToken: 'A new token', cli: 'clusterdeck tokens create ada --role operator',
        body: apps ? HOST_TOKEN_BODY : TOKEN_BODY, status: 201, isSecret: true,
        problems: ['name-taken', 'not-possible'],
        answer: TOKEN.extend({ token: z.string().describe('the secret: send it as `Authorization: Bearer …`') }).meta({
          id: 'NewToken'
        }), handle ({ body, auth }) {
        const { name, role, ttl } = body
        const { token, secret } = tokens.create({ name, role, ttlMs: ttlWithin(auth, ttl, now()), createdBy: auth.actor,
          createdWith: auth.token, ...(apps && { apps: appsWithin(apps, auth, body) }) })
        events.publish(tokenEvent('token.created', auth.actor, token))
        return { body: { ...shown(token), token: secret } }
      } })
    },

    '/tokens/:id': {
      DELETE: operation({ name: 'revokeToken',
        summary: 'Revokes a token and the tokens that it created; their sessions are closed at once', role: 'admin',
        cli: 'clusterdeck tokens revoke 3', headers: { 'If-Match': IF_MATCH.optional() },
        problems: ['not-found', 'precondition-failed'],
        answer: TOKEN.extend({
          alsoEnded: z.array(NUMBER).describe('the tokens that it created, directly or through others')
        }).meta({ id: 'RevokedToken' }), handle ({ id, auth, seen: wanted }) {
        // A token can be revoked while no list can be read.
        const isListed = auth.apps || wanted !== undefined
        const seen = isListed ? tokensOf(auth, tokens.list()) : null
        if (seen) checkMatch(wanted, tokensTag(seen), { isRequired: false, change: () => changeOfTokens(history) })
        if (auth.apps && !seen?.some((token) => token.id === id))
          throw new DeckError('not-found', `Token ${id} does not exist`)
        const { token, made } = tokens.revoke(id, auth.actor)
        for (const each of [token, ...made]) events.publish(tokenEvent('token.revoked', auth.actor, each))
        return { body: { ...shown(token), alsoEnded: made.map((each) => each.id) } }
      } })
    }
  }

  function shown (token: StoredToken) {
    return shownTokens([token])[0]
  }

  function shownTokens (all: StoredToken[]) {
    const known = { now: now(), sessions: sessions.countByToken() }
    return all.map((token) => ({ ...shownToken(token, known), ...(apps && { apps: token.apps ?? null }) }))
  }
}

export function tokenEvent (type: 'token.created' | 'token.revoked', actor: string,
  { id, name, role, kind, createdWith, expiresAt, apps = null }: StoredToken): NewEvent
{
  const message = `${kind} ${id} of ${name} (${roleText({ role, apps })})${
    createdWith === null ? '' : `, made with token ${createdWith}`
  }`
  return { type, actor, message,
    detail: { token: id, name, role, kind, createdWith, expiresAt: toIso(expiresAt), ...(apps && { apps }) } }
}

/** A number is never given out twice, so that these two say which tokens there are. `all`: newest first. */
export function tokensTag (all: readonly { id: number }[]) {
  return `${all.length}-${all[0]?.id ?? 0}`
}

function changeOfTokens (history: Past) {
  const event = lastOf(history, ['token.created', 'token.revoked'])
  return event
    ? `${doerOf(event)} has ${
      event.type === 'token.created' ? 'created' : 'revoked'
    } the ${event.message} since you opened this`
    : 'The tokens have changed since you opened this'
}

/**
 * A token cannot last longer than the one that makes it. `ttlMs`: as it was asked for.
 * @throws {DeckError} forbidden
 */
function ttlWithin ({ token, until }: Pick<Auth, 'token' | 'until'>, ttlMs: number | undefined, now: number) {
  const leftMs = until === null ? Infinity : until - now
  if (ttlMs !== undefined && ttlMs > leftMs) {
    throw new DeckError('forbidden',
      `ttl: expected no more than token ${token} has left itself (it ends ${toIso(now + leftMs)}), received ${
        Math.round(ttlMs / 1000)
      }s`)
  }
  return Math.min(ttlMs ?? DEFAULT_TTL_MS, leftMs)
}

/** Whoever has a role for some apps sees no tokens but those for no other apps. */
export function tokensOf (person: Pick<Person, 'apps'>, all: StoredToken[]) {
  return person.apps ? all.filter(({ apps }) => apps?.every((app) => mayUse(person, app))) : all
}

export function shownToken (
  { id, name, role, createdAt, createdBy, createdWith, expiresAt, kind, usedAt, usedFrom }: StoredToken,
  { now, sessions }: { now: number, sessions: Map<number | null, number> }
) {
  return { id, name, role, createdAt: toIso(createdAt), createdBy, createdWith, expiresAt: toIso(expiresAt),
    isExpired: expiresAt <= now, kind, lastUsedAt: usedAt === null ? null : toIso(usedAt), lastUsedFrom: usedFrom,
    sessions: sessions.get(id) ?? 0 }
}
