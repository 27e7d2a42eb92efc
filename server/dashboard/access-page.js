import { shownToken, tokensOf } from '../api/tokens.js'
import { DeckError } from '../errors.js'

/**
 * Lists the tokens for an admin, who can create and revoke them.
 * @param {{ tokens?: Pick<import('../api/tokens.js').TokenRegistry, 'list'>, can?: import('./powers.js').Powers, now: number, apps?: readonly string[] | null }} parts
 *   `apps`: of a host, which a new token may be limited to
 * @throws {DeckError} forbidden
 */
export function accessModel ({ tokens, can, now, apps = null }) {
  if (!can?.administer || !tokens) throw new DeckError('forbidden', 'Only an admin can see the tokens')
  const own = apps?.filter((name) => can.apps?.includes(name) ?? true) ?? null
  return { now, apps: own, tokens: tokensOf(can, tokens.list()).map((token) => ({ ...shownToken(token, now), apps: token.apps ?? null })) }
}
