import { toIso } from '../api/fields.ts'
import { LINK_TTL_MS, madeWith } from '../api/roles.ts'
import { shownToken, tokensOf, tokensTag } from './api-tokens.ts'
import { DeckError } from '../errors.ts'
import { count } from '../words/health.ts'
import type { Sessions, Token, TokenRegistry } from './api-tokens.ts'
import type { Powers } from '../dashboard/powers.ts'

/** Who has access, for an admin, who can give it and take it away. */
/** `apps`: of a host, which a new token may be limited to */
type Parts = { tokens?: Pick<TokenRegistry, 'list' | 'lastUseByOwner'>, sessions?: Sessions, can?: Powers,
  now: () => number, apps?: readonly string[] | null }

/** @throws {DeckError} forbidden */
export function accessModel (parts: Parts) {
  const { can, apps = null } = parts
  const list = listOf(parts)
  return { ...list, own: can?.token ?? null, apps: apps?.filter((name) => can?.apps?.includes(name) ?? true) ?? null }
}

/** Whoever may not see the list gets no updates of it. */
export function followAccess (parts: Omit<Parts, 'apps'>) {
  return () => parts.can?.administer ? listOf(parts) : null
}

/** @throws {DeckError} forbidden */
function listOf ({ tokens, sessions, can, now: clock }: Omit<Parts, 'apps'>) {
  const now = clock()
  if (!can?.administer || !tokens || !sessions) throw new DeckError('forbidden', 'Only an admin can see who has access')
  const mine = tokensOf(can, tokens.list())
  const known = { now, sessions: sessions.countByToken() }
  const shown = mine.map((token) => ({ ...shownToken(token, known), apps: token.apps ?? null }))
  const used = tokens.lastUseByOwner()
  const owner = can.apps ?
    null :
    { isMine: can.name === null, sessions: known.sessions.get(null) ?? 0,
      used: used && { at: toIso(used.at), from: used.from } }
  return { now, owner, tag: tokensTag(mine), tokens: shown.map((token) => {
    const made = madeWith(token.id, mine).map(({ id }) => id)
    return { ...token, isMine: token.id === can.token, unused: unusedText(token, now), ends: [token.id, ...made],
      consequence: consequenceOf(token, shown.filter(({ id }) => made.includes(id))) }
  }) }
}

function unusedText ({ kind, createdAt }: Omit<Token, 'apps'>, now: number) {
  if (kind === 'token') return 'never used'
  return now - Date.parse(createdAt) < LINK_TTL_MS ? 'not opened yet' : 'not opened in time'
}

/** What it means to revoke it. `made`: with it. */
function consequenceOf ({ name, kind, sessions, isExpired }: Omit<Token, 'apps'>, made: Omit<Token, 'apps'>[]) {
  const own = sessions > 0
    ? `${name} is signed out of ${count(sessions, 'browser')} at once.`
    : kind === 'link'
    ? `The link does not work any more. ${name} is not signed in.`
    : `${name} is not signed in.`
  const secret = kind === 'link' || isExpired ? '' : ' Scripts that send this token are refused from now on.'
  return own + secret + (made.length > 0 ? ` What it has created ends, too: ${made.map(textOfMade).join(', ')}.` : '')
}

function textOfMade ({ name, role, sessions }: Omit<Token, 'apps'>) {
  return `${name} (${role}${sessions > 0 ? `, ${count(sessions, 'browser')} signed in` : ''})`
}
