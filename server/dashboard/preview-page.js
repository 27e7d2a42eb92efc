import { formatExactDuration } from '../../public/format.js'
import { DeckError } from '../errors.js'
import { previewFacts } from '../preview-facts.js'
import { strategyOfForm } from './strategy-form.js'

/**
 * What the dialog of a deploy shows of it before it begins.
 * @param {{ deck: Pick<import('../deck.js').Deck, 'preview'>, params: URLSearchParams, can?: import('./powers.js').Powers, now: () => number }} parts
 * @throws {DeckError} forbidden
 */
export async function previewModel ({ deck, params, can, now }) {
  if (!can?.operate) throw new DeckError('forbidden', 'Only whoever may deploy can see what a deploy would do')
  const { strategy, refusals } = readStrategy(params)
  const preview = await deck.preview({ kind: 'deploy', strategy, actor: 'dashboard' })
  return { now: now(), preview: { ...preview, refusals: [...refusals, ...preview.refusals] }, facts: previewFacts(preview, formatExactDuration) }
}

/**
 * @param {URLSearchParams} params
 * @returns {{ strategy?: import('../lifecycle/rollout/strategy.js').StrategyWish, refusals: import('../preview.js').Preview['refusals'] }} what is typed may be wrong yet
 */
function readStrategy (params) {
  try {
    return { ...strategyOfForm(Object.fromEntries(params)), refusals: [] }
  } catch (error) {
    if (!(error instanceof DeckError)) throw error
    return { refusals: [error] }
  }
}
