import { DeckError } from '../errors.js'

/**
 * What a rollout of the fleet has this deck do: its own judged rollouts, which are in its history with who wanted them.
 * @typedef {import('./rollout.js').FleetRollout} FleetRollout
 */

/**
 * @param {Pick<import('../deck.js').Deck, 'snapshot' | 'dispatch' | 'deploy'>} deck
 * @param {'nothing' | 'read' | 'operate'} accept
 * @param {Pick<import('./packages.js').Packages, 'fetch'>} packages
 * @returns {import('./member-runtime.js').DeckAdapter}
 */
export function createDeckAdapter (deck, accept, packages) {
  return {
    async begin (document) {
      checkAccepted()
      const { kind, source: { path, digest, release }, actor } = document
      const command = { actor, note: noteOf(document) }
      if (kind === 'deploy') return (await deck.deploy({ ...command, path: digest === undefined ? path : await packages.fetch(digest) })).id
      return startRollout(kind === 'restart' ? { ...command, kind } : { ...command, kind, release })
    },

    async rollBack (release, document) {
      checkAccepted()
      return startRollout({ kind: 'rollback', release: release ?? undefined, actor: document.actor, note: `${noteOf(document)}: taken back` })
    },

    abort (rollout, { actor }) {
      deck.dispatch(/** @type {any} */ ({ type: 'abort', rollout, actor }))
    },

    release: () => deck.snapshot().release?.id ?? null
  }

  /** Whatever the document says that it has done. @throws {DeckError} forbidden */
  function checkAccepted () {
    if (accept !== 'operate') throw new DeckError('forbidden', `fleet.accept: expected "operate" to roll out for the fleet, received "${accept}"`)
  }

  /** @param {Omit<Extract<import('../deck.js').DeckCommand, { type: 'rollout' }>, 'type'>} command */
  function startRollout (command) {
    const { id } = /** @type {import('../deck.js').RolloutView} */ (deck.dispatch(/** @type {any} */ ({ type: 'rollout', ...command })))
    return id
  }
}

/** @param {FleetRollout} rollout */
function noteOf ({ id, note }) {
  return note === null ? `rollout ${id} of the fleet` : `${note} (rollout ${id} of the fleet)`
}

/**
 * What has become of an own rollout.
 * @param {{ type: string, release: string | null, message: string | null }} event  its last one
 * @param {{ way: 'forward' | 'back', isAborted: boolean }} task
 * @returns {import('./member.js').Result}
 */
export function resultOf ({ type, release, message }, { way, isAborted }) {
  if (type === 'rollout.succeeded') return { state: way === 'forward' ? 'succeeded' : 'reverted', to: release, reason: null }
  if (way === 'forward' && isAborted && type === 'rollout.rolled-back') return { state: 'reverted', to: null, reason: null }
  return { state: 'failed', to: null, reason: message ?? 'it has failed' }
}
