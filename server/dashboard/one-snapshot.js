/**
 * The same deck, which looks once for all that is rendered in one turn of the event loop: a page, what stands around it, and what other viewers see.
 * @typedef {Pick<import('../deck.js').Deck, 'snapshot' | 'health'>} Seen
 */

/** @template {Seen} D @param {D} deck @returns {D} */
export function withOneSnapshot (deck) {
  /** @type {{ snapshot: ReturnType<Seen['snapshot']>, health: ReturnType<Seen['health']> | null } | null} */
  let kept = null
  return Object.create(deck, { snapshot: { value: () => look().snapshot }, health: { value: healthOf } })

  function look () {
    if (kept === null) Promise.resolve().then(() => { kept = null })
    kept ??= { snapshot: deck.snapshot(), health: null }
    return kept
  }

  /** @param {Parameters<Seen['health']>[0]} snapshot */
  function healthOf (snapshot) {
    if (snapshot !== kept?.snapshot) return deck.health(snapshot)
    kept.health ??= deck.health(snapshot)
    return kept.health
  }
}
