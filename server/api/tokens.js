import { z } from 'zod'
import { parseDuration } from '../config/duration.js'
import { DeckError } from '../errors.js'
import { APPS_FIELD, appsWithin } from './apps.js'
import { operation } from './endpoint.js'
import { ACTOR, COUNT, listOf, NUMBER, PERSON_NAME, ROLE, TIME, toIso } from './fields.js'
import { readBy } from './input.js'
import { checkMatch, doerOf, IF_MATCH, lastOf, tagOf } from './preconditions.js'
import { mayUse, roleText } from './roles.js'

const DAY_MS = 24 * 60 * 60_000
const MIN_TTL_MS = 60_000
const MAX_TTL_MS = 3650 * DAY_MS
const DEFAULT_TTL_MS = 90 * DAY_MS

/** @typedef {z.infer<typeof TOKEN>} Token */
const TOKEN = z.strictObject({
  id: NUMBER,
  name: z.string(),
  role: ROLE,
  createdAt: TIME,
  createdBy: ACTOR,
  createdWith: NUMBER.nullable().describe('the token that created it, and with which it ends; null: the token of the data folder'),
  expiresAt: TIME,
  isExpired: z.boolean(),
  kind: z.enum(['token', 'link']).describe('`link`: it stands for whoever was sent a sign-in link; nobody has its secret'),
  lastUsedAt: TIME.nullable().describe('null: never'),
  lastUsedFrom: z.string().nullable().describe('the address; behind a proxy, that of the proxy'),
  sessions: COUNT.describe('how many browsers are signed in by it'),
  apps: z.array(z.string()).nullable().optional().describe('of a host: the apps that its role is for; null: all')
}).meta({ id: 'Token' })

const TOKEN_BODY = z.strictObject({
  name: PERSON_NAME,
  role: ROLE,
  ttl: z.string().transform(readBy(parseDuration)).pipe(z.int().min(MIN_TTL_MS).max(MAX_TTL_MS)).optional()
    .meta({
      description: 'how long it may be used: a duration from 1m to 3650d, such as 90d (the default), and no longer than the token that creates it',
      as: { type: 'string', pattern: '^[1-9]\\d{0,2}d$' }
    })
}).meta({ examples: [{ name: 'ada', role: 'operator', ttl: '30d' }] })

const HOST_TOKEN_BODY = TOKEN_BODY.extend({ apps: APPS_FIELD }).meta({ examples: [{ name: 'ci', role: 'operator', apps: ['shop'] }] })

/**
 * What the tokens of this deck are kept in, see admin/tokens.js.
 * @typedef {import('../../db/tokens.js').Token} StoredToken
 * @typedef {object} TokenRegistry
 * @property {(secret: string) => StoredToken | null} find
 * @property {(id: number) => boolean} isValid  whether it may still be used
 * @property {() => StoredToken[]} list  newest first, also those that have expired; throws history-unavailable
 * @property {(wanted: WantedToken) => { token: StoredToken, secret: string }} create
 *   the secret is nowhere else; throws name-taken, not-possible, history-unavailable
 * @property {(id: number, actor: string) => { token: StoredToken, made: StoredToken[] }} revoke  with all that was made by it; throws not-found, history-unavailable
 * @property {(id: number) => { name: string, actor: string } | null} revokedBy
 * @property {(id: number, from: string) => void} noteUse
 * @property {(listener: () => void) => void} onRevoked
 */
/**
 * @typedef {Pick<StoredToken, 'name' | 'role' | 'createdBy' | 'createdWith' | 'apps'> & { ttlMs: number, kind?: StoredToken['kind'] }} WantedToken
 * @typedef {{ countByToken: () => Map<number, number> }} Sessions  how many browsers are signed in, by token
 */

/**
 * Tokens for people and scripts, each with a name and a role.
 * @param {object} parts
 * @param {TokenRegistry} parts.tokens
 * @param {Sessions} parts.sessions
 * @param {import('./preconditions.js').Past} parts.history
 * @param {Pick<import('../events/stream.js').EventStream, 'publish'>} parts.events
 * @param {() => number} parts.now
 * @param {import('./apps.js').Apps | null} [parts.apps]  of a host
 * @returns {Record<string, import('./endpoint.js').Resource>}
 */
export function tokenResources ({ tokens, sessions, history, events, now, apps = null }) {
  return {
    '/tokens': {
      GET: operation({
        name: 'listTokens',
        summary: 'Lists the tokens, newest first, without their secrets',
        role: 'admin',
        cli: 'clusterdeck tokens',
        hasTag: true,
        answer: listOf(TOKEN),
        handle ({ auth }) {
          const items = tokensOf(auth, tokens.list())
          return { headers: { ETag: tagOf(tokensTag(items)) }, body: { items: shownTokens(items) } }
        }
      }),
      POST: operation({
        name: 'createToken',
        summary: 'Creates a token; only this answer holds its secret',
        role: 'admin',
        byToken: 'A new token',
        cli: 'clusterdeck tokens create ada --role operator',
        body: apps ? HOST_TOKEN_BODY : TOKEN_BODY,
        status: 201,
        isSecret: true,
        problems: ['name-taken', 'not-possible'],
        answer: TOKEN.extend({ token: z.string().describe('the secret: send it as `Authorization: Bearer …`') }).meta({ id: 'NewToken' }),
        handle ({ body, auth }) {
          const { name, role, ttl } = body
          const { token, secret } = tokens.create({
            name,
            role,
            ttlMs: ttlWithin(auth, ttl, now()),
            createdBy: auth.actor,
            createdWith: auth.token,
            ...(apps && { apps: appsWithin(apps, auth, body) })
          })
          events.publish(tokenEvent('token.created', auth.actor, token))
          return { body: { ...shown(token), token: secret } }
        }
      })
    },

    '/tokens/:id': {
      DELETE: operation({
        name: 'revokeToken',
        summary: 'Revokes a token and the tokens that it created; their sessions are closed at once',
        role: 'admin',
        cli: 'clusterdeck tokens revoke 3',
        headers: { 'If-Match': IF_MATCH.optional() },
        problems: ['not-found', 'precondition-failed'],
        answer: TOKEN.extend({ alsoEnded: z.array(NUMBER).describe('the tokens that it created, directly or through others') }).meta({ id: 'RevokedToken' }),
        handle ({ id, auth, req }) {
          // A token can be revoked while no list can be read.
          const isListed = auth.apps || req.headers['if-match'] !== undefined
          const seen = isListed ? tokensOf(auth, tokens.list()) : null
          if (seen) checkMatch(req, tokensTag(seen), { isRequired: false, change: () => changeOfTokens(history) })
          if (auth.apps && !seen?.some((token) => token.id === id)) throw new DeckError('not-found', `Token ${id} does not exist`)
          const { token, made } = tokens.revoke(id, auth.actor)
          for (const each of [token, ...made]) events.publish(tokenEvent('token.revoked', auth.actor, each))
          return { body: { ...shown(token), alsoEnded: made.map((each) => each.id) } }
        }
      })
    }
  }

  /** @param {StoredToken} token */
  function shown (token) {
    return shownTokens([token])[0]
  }

  /** @param {StoredToken[]} all */
  function shownTokens (all) {
    const known = { now: now(), sessions: sessions.countByToken() }
    return all.map((token) => ({ ...shownToken(token, known), ...(apps && { apps: token.apps ?? null }) }))
  }
}

/**
 * @param {'token.created' | 'token.revoked'} type @param {string} actor @param {StoredToken} token
 * @returns {import('../events/stream.js').NewEvent}
 */
export function tokenEvent (type, actor, { id, name, role, kind, createdWith, expiresAt, apps = null }) {
  const message = `${kind} ${id} of ${name} (${roleText({ role, apps })})${createdWith === null ? '' : `, made with token ${createdWith}`}`
  return { type, actor, message, detail: { token: id, name, role, kind, createdWith, expiresAt: toIso(expiresAt), ...(apps && { apps }) } }
}

/** A number is never given out twice, so that these two say which tokens there are. @param {readonly { id: number }[]} all newest first */
export function tokensTag (all) {
  return `${all.length}-${all[0]?.id ?? 0}`
}

/** @param {import('./preconditions.js').Past} history */
function changeOfTokens (history) {
  const event = lastOf(history, ['token.created', 'token.revoked'])
  return event ? `${doerOf(event)} has ${event.type === 'token.created' ? 'created' : 'revoked'} the ${event.message} since you opened this` : 'The tokens have changed since you opened this'
}

/** @param {number} id @param {StoredToken[]} all @returns {StoredToken[]} what it has made, what these have, and so on */
export function madeWith (id, all) {
  const made = all.filter(({ createdWith }) => createdWith === id)
  return made.flatMap((each) => [each, ...madeWith(each.id, all)])
}

/**
 * A token cannot last longer than the one that makes it.
 * @param {Pick<import('./roles.js').Auth, 'token' | 'until'>} maker @param {number | undefined} ttlMs as it was asked for @param {number} now
 * @throws {DeckError} forbidden
 */
function ttlWithin ({ token, until }, ttlMs, now) {
  const leftMs = until === null ? Infinity : until - now
  if (ttlMs !== undefined && ttlMs > leftMs) {
    throw new DeckError(
      'forbidden',
      `ttl: expected no more than token ${token} has left itself (it ends ${toIso(now + leftMs)}), received ${Math.round(ttlMs / 1000)}s`
    )
  }
  return Math.min(ttlMs ?? DEFAULT_TTL_MS, leftMs)
}

/**
 * Whoever has a role for some apps sees no tokens but those for no other apps.
 * @param {Pick<import('./roles.js').Person, 'apps'>} person @param {StoredToken[]} all
 */
export function tokensOf (person, all) {
  return person.apps ? all.filter(({ apps }) => apps?.every((app) => mayUse(person, app))) : all
}

/** @param {StoredToken} token @param {{ now: number, sessions: Map<number, number> }} known */
export function shownToken ({ id, name, role, createdAt, createdBy, createdWith, expiresAt, kind, usedAt, usedFrom }, { now, sessions }) {
  return {
    id,
    name,
    role,
    createdAt: toIso(createdAt),
    createdBy,
    createdWith,
    expiresAt: toIso(expiresAt),
    isExpired: expiresAt <= now,
    kind,
    lastUsedAt: usedAt === null ? null : toIso(usedAt),
    lastUsedFrom: usedFrom,
    sessions: sessions.get(id) ?? 0
  }
}
