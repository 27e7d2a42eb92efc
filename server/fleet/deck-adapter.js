import { DeckError } from '../errors.js'

/**
 * Runs the rollouts of this deck that a rollout of the fleet asks for; the history of the deck names who started the fleet's.
 * @typedef {import('./rollout.js').FleetRollout} FleetRollout
 * @typedef {import('../../db/history.js').History} History
 * @typedef {ReturnType<typeof import('../lifecycle/snapshot.js').snapshotOf>} Snapshot
 * @typedef {{ vitals: { requestsPerSecond?: number | null, latencyP99Ms?: number | null } | null }} WorkerRow
 * @typedef {Omit<Snapshot, 'workers'> & { app: { name: string }, workers: WorkerRow[], history: { problem: string | null, since: string | null } }} OwnStatus
 *
 * What a fleet needs of the deck that it runs in, see server/deck.js.
 * @typedef {object} OwnDeck
 * @property {() => OwnStatus} snapshot
 * @property {(status: any) => { tone: import('../health.js').Health['tone'], text: string }} health
 * @property {(command: any) => any} dispatch
 * @property {(wanted: { actor: string, note: string, path?: string, mode?: 'folder' }) => Promise<{ id: number }>} deploy
 * @property {import('../events/stream.js').EventStream} events
 * @property {History} history
 * @property {import('../crashes/crashes.js').CrashService} crashes
 * @property {Pick<import('../events/notices.js').Notices, 'list'>} notices
 * @property {{ list: (query: { limit: number, cursor?: string }) => { items: { path: string }[], next: string | null } }} releases
 */

/**
 * @param {Pick<OwnDeck, 'snapshot' | 'dispatch' | 'deploy'>} deck
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
      // What was pushed runs from a folder of its own, with what all releases share.
      if (kind === 'deploy') return (await deck.deploy({ ...command, ...(digest === undefined ? { path } : { path: await packages.fetch(digest), mode: 'folder' }) })).id
      return startRollout(kind === 'restart' ? { ...command, kind } : { ...command, kind, release })
    },

    async rollBack (release, document) {
      checkAccepted()
      return startRollout({ kind: 'rollback', release: release ?? undefined, actor: document.actor, note: `${noteOf(document)}: rolled back` })
    },

    abort (rollout, { actor }) {
      deck.dispatch({ type: 'abort', rollout, actor })
    },

    release: () => deck.snapshot().release?.id ?? null
  }

  /** The document is not trusted with it. @throws {DeckError} forbidden */
  function checkAccepted () {
    if (accept !== 'operate') throw new DeckError('forbidden', `fleet.accept: expected "operate" to roll out for the fleet, received "${accept}"`)
  }

  /** @param {{ kind: 'restart' | 'rollback', actor: string, note: string, release?: string }} command */
  function startRollout (command) {
    return deck.dispatch({ type: 'rollout', ...command }).id
  }
}

/** @param {FleetRollout} rollout */
function noteOf ({ id, note }) {
  return note === null ? `rollout ${id} of the fleet` : `${note} (rollout ${id} of the fleet)`
}

/**
 * @param {{ type: string, release: string | null, message: string | null }} event  its last one
 * @param {{ way: 'forward' | 'back', isAborted: boolean }} task
 * @returns {import('./member.js').Result}
 */
export function resultOf ({ type, release, message }, { way, isAborted }) {
  if (type === 'rollout.succeeded') return { state: way === 'forward' ? 'succeeded' : 'reverted', to: release, reason: null }
  if (way === 'forward' && isAborted && type === 'rollout.rolled-back') return { state: 'reverted', to: null, reason: null }
  return { state: 'failed', to: null, reason: message ?? 'it has failed' }
}
