import type { Deck } from '../deck.ts'

/**
 * The same deck, which looks once for all that is rendered in one turn of the event loop: a page, what stands around
 * it, and what other viewers see.
 */
type Seen = Pick<Deck, 'snapshot' | 'health'>

export function withOneSnapshot<D extends Seen> (deck: D): D {
  let kept: { snapshot: ReturnType<Seen['snapshot']>, health: ReturnType<Seen['health']> | null } | null = null
  return Object.create(deck, { snapshot: { value: () => look().snapshot }, health: { value: healthOf } })

  function look () {
    if (kept === null)
      Promise.resolve().then(() => {
        kept = null
      })
    kept ??= { snapshot: deck.snapshot(), health: null }
    return kept
  }

  function healthOf (snapshot: Parameters<Seen['health']>[0]) {
    if (snapshot !== kept?.snapshot) return deck.health(snapshot)
    kept.health ??= deck.health(snapshot)
    return kept.health
  }
}
