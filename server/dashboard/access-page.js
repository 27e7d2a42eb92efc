import { shownToken } from '../api/tokens.js'
import { DeckError } from '../errors.js'

/**
 * The tokens, for those who may make and end them.
 * @param {{ tokens: Pick<import('../admin/tokens.js').Tokens, 'list'>, can?: import('./powers.js').Powers, now: number }} parts
 * @throws {DeckError} forbidden
 */
export function accessModel ({ tokens, can, now }) {
  if (!can?.administer) throw new DeckError('forbidden', 'Only an admin sees who may come in')
  return { now, tokens: tokens.list().map((token) => shownToken(token, now)) }
}
