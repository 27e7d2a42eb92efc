import { shownToken, tokensOf } from '../api/tokens.js'
import { DeckError } from '../errors.js'

/**
 * Lists the tokens for an admin, who can create and revoke them.
 * @param {{ tokens?: Pick<import('../api/tokens.js').TokenRegistry, 'list'>, can?: import('./powers.js').Powers, now: number }} parts
 * @throws {DeckError} forbidden
 */
export function accessModel ({ tokens, can, now }) {
  if (!can?.administer || !tokens) throw new DeckError('forbidden', 'Only an admin can see the tokens')
  return { now, tokens: tokensOf(can, tokens.list()).map((token) => ({ ...shownToken(token, now), apps: token.apps ?? null })) }
}
