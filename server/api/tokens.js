import { z } from 'zod'
import { parseDuration } from '../config/duration.js'
import { DeckError } from '../errors.js'
import { APPS_FIELD, appsWithin } from './apps.js'
import { operation } from './endpoint.js'
import { ACTOR, listOf, NUMBER, PERSON_NAME, ROLE, TIME } from './fields.js'
import { readBy } from './input.js'
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
 * @property {(wanted: { name: string, role: import('./roles.js').Role, ttlMs: number, createdBy: string, createdWith: number | null, apps?: readonly string[] | null }) => { token: StoredToken, secret: string }} create
 *   the secret is nowhere else; throws not-possible, history-unavailable
 * @property {(id: number) => { token: StoredToken, made: StoredToken[] }} revoke  with all that was made by it; throws not-found, history-unavailable
 * @property {(listener: () => void) => void} onRevoked
 */

/**
 * Tokens for people and scripts, each with a name and a role.
 * @param {object} parts
 * @param {TokenRegistry} parts.tokens
 * @param {Pick<import('../events/stream.js').EventStream, 'publish'>} parts.events
 * @param {() => number} parts.now
 * @param {import('./apps.js').Apps | null} [parts.apps]  of a host
 * @returns {Record<string, import('./endpoint.js').Resource>}
 */
export function tokenResources ({ tokens, events, now, apps = null }) {
  return {
    '/tokens': {
      GET: operation({
        name: 'listTokens',
        summary: 'Lists the tokens, newest first, without their secrets',
        role: 'admin',
        cli: 'clusterdeck tokens',
        answer: listOf(TOKEN),
        handle: ({ auth }) => ({ body: { items: tokensOf(auth, tokens.list()).map(shown) } })
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
        problems: ['not-possible'],
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
          publishTokenEvent('token.created', auth.actor, token)
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
        problems: ['not-found'],
        answer: TOKEN.extend({ alsoEnded: z.array(NUMBER).describe('the tokens that it created, directly or through others') }).meta({ id: 'RevokedToken' }),
        handle ({ id, auth }) {
          if (auth.apps && !tokensOf(auth, tokens.list()).some((token) => token.id === id)) throw new DeckError('not-found', `Token ${id} does not exist`)
          const { token, made } = tokens.revoke(id)
          for (const each of [token, ...made]) publishTokenEvent('token.revoked', auth.actor, each)
          return { body: { ...shown(token), alsoEnded: made.map((each) => each.id) } }
        }
      })
    }
  }

  /** @param {StoredToken} token */
  function shown (token) {
    return { ...shownToken(token, now()), ...(apps && { apps: token.apps ?? null }) }
  }

  /** @param {string} type @param {string} actor @param {StoredToken} token */
  function publishTokenEvent (type, actor, { id, name, role, createdWith, expiresAt, apps: itsApps = null }) {
    const message = `token ${id} of ${name} (${roleText({ role, apps: itsApps })})${createdWith === null ? '' : `, made with token ${createdWith}`}`
    events.publish({ type, actor, message, detail: { token: id, name, role, createdWith, expiresAt: toIso(expiresAt), ...(itsApps && { apps: itsApps }) } })
  }
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

/** @param {StoredToken} token @param {number} now */
export function shownToken ({ id, name, role, createdAt, createdBy, createdWith, expiresAt }, now) {
  return { id, name, role, createdAt: toIso(createdAt), createdBy, createdWith, expiresAt: toIso(expiresAt), isExpired: expiresAt <= now }
}

/** @param {number} ms */
function toIso (ms) {
  return new Date(ms).toISOString()
}
