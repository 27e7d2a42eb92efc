import { formatExactDuration } from '../../public/format.ts'
import { parseFormBody } from '../api/form.ts'
import { PREVIEW_ORDER } from './api.ts'
import { DeckError, onRefusal } from '../errors.ts'
import { previewFacts } from './preview-facts.ts'
import type { z } from 'zod'
import type { Deck } from '../deck.ts'
import type { Powers } from '../dashboard/powers.ts'
import type { Preview } from '../api/shapes.ts'

/**
 * What the dialog of a deploy shows of it before it begins.
 * @throws {DeckError} forbidden
 */
export async function previewModel (
  { deck, params, can, now }: { deck: Pick<Deck, 'preview' | 'releases'>, params: URLSearchParams, can?: Powers,
    now: () => number }
) {
  if (!can?.operate) throw new DeckError('forbidden', 'Only whoever may deploy can see what a deploy would do')
  const { wanted: { note, guess, ...wanted }, refusals } = readWanted(params)
  const [preview, refs] = await Promise.all([
    deck.preview({ ...wanted, kind: 'deploy', isGuessAccepted: guess, actor: 'dashboard' }),
    // The app may be in no repository.
    deck.releases.refs().catch(onRefusal(() => null))
  ])
  const isUnconfirmed = preview.refusals.some(({ code }) => code === 'build-unconfirmed')
  return {
    now: now(),
    refs,
    // What is confirmed is what is shown: a branch may lead to another commit by then.
    commit: wanted.git === undefined ? null : preview.release?.git?.commit ?? null,
    // The form asks for a confirmation in place of this refusal.
    guess: preview.build?.isGuess && (isUnconfirmed || guess)
      ? { text: preview.build.text, isAccepted: !isUnconfirmed }
      : null,
    preview: { ...preview,
      refusals: [...refusals, ...preview.refusals.filter(({ code }) => code !== 'build-unconfirmed')] },
    facts: previewFacts(preview, formatExactDuration)
  }
}

/** @returns what is typed may be wrong yet */
function readWanted (
  params: URLSearchParams
): { wanted: Partial<z.infer<typeof PREVIEW_ORDER>>, refusals: Preview['refusals'] } {
  try {
    return { wanted: parseFormBody(PREVIEW_ORDER, { ...Object.fromEntries(params), kind: 'deploy' }), refusals: [] }
  } catch (error) {
    if (!(error instanceof DeckError)) throw error
    return { wanted: {}, refusals: [error] }
  }
}
