import { formatExactDuration } from '../../public/format.js'
import { DeckError } from '../errors.js'
import { previewFacts } from '../preview-facts.js'

/**
 * What the dialog of a deploy shows of it before it begins.
 * @param {{ deck: Pick<import('../deck.js').Deck, 'preview'>, can?: import('./powers.js').Powers, now: () => number }} parts
 * @throws {DeckError} forbidden
 */
export async function previewModel ({ deck, can, now }) {
  if (!can?.operate) throw new DeckError('forbidden', 'Only whoever may deploy can see what a deploy would do')
  const preview = await deck.preview({ kind: 'deploy', actor: 'dashboard' })
  return { now: now(), preview, facts: previewFacts(preview, formatExactDuration) }
}
