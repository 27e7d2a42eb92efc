import { formatExactDuration } from '../../public/format.js'
import { DeckError } from '../errors.js'
import { previewFacts } from '../preview-facts.js'
import { commitOfForm, strategyOfForm } from './strategy-form.js'

/**
 * What the dialog of a deploy shows of it before it begins.
 * @param {{ deck: Pick<import('../deck.js').Deck, 'preview' | 'releases'>, params: URLSearchParams, can?: import('./powers.js').Powers, now: () => number }} parts
 * @throws {DeckError} forbidden
 */
export async function previewModel ({ deck, params, can, now }) {
  if (!can?.operate) throw new DeckError('forbidden', 'Only whoever may deploy can see what a deploy would do')
  const { wanted, refusals } = readWanted(params)
  const [preview, refs] = await Promise.all([deck.preview({ kind: 'deploy', ...wanted, actor: 'dashboard' }), refsOf(deck)])
  const isUnconfirmed = preview.refusals.some(({ code }) => code === 'build-unconfirmed')
  return {
    now: now(),
    refs,
    // The form asks for a confirmation in place of this refusal.
    guess: preview.build?.isGuess && (isUnconfirmed || wanted.isGuessAccepted) ? { text: preview.build.text, isAccepted: !isUnconfirmed } : null,
    preview: { ...preview, refusals: [...refusals, ...preview.refusals.filter(({ code }) => code !== 'build-unconfirmed')] },
    facts: previewFacts(preview, formatExactDuration)
  }
}

/** @param {Pick<import('../deck.js').Deck, 'releases'>} deck @returns {Promise<import('../releases/git.js').Ref[] | null>} null: the app is in no repository */
async function refsOf (deck) {
  try {
    return await deck.releases.refs()
  } catch (error) {
    if (!(error instanceof DeckError)) throw error
    return null
  }
}

/**
 * @param {URLSearchParams} params
 * @returns {{ wanted: ReturnType<typeof strategyOfForm> & Partial<ReturnType<typeof commitOfForm>>, refusals: import('../preview.js').Preview['refusals'] }} what is typed may be wrong yet
 */
function readWanted (params) {
  const fields = Object.fromEntries(params)
  try {
    return { wanted: { ...commitOfForm(fields), ...strategyOfForm(fields) }, refusals: [] }
  } catch (error) {
    if (!(error instanceof DeckError)) throw error
    return { wanted: {}, refusals: [error] }
  }
}
