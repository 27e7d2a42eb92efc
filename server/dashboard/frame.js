import os from 'node:os'
import { describeHealth } from '../health.js'

/**
 * What stands around every page: whose it is, and what is wrong at the moment wherever somebody looks.
 * @typedef {ReturnType<typeof frameModel>} Frame
 * @typedef {Pick<import('../deck.js').Deck, 'snapshot' | 'notices'>} Deck
 * @typedef {import('../deck.js').Status} Status
 */

/** The elements around the pages that change, by id; each is the partial of the same name. */
export const FRAME_FRAGMENTS = Object.freeze(['trouble', 'open-crashes'])

/** Of a page that is shown without a cluster. */
export const NO_FRAME = Object.freeze(/** @type {Frame} */ ({ app: 'clusterdeck', host: '', trouble: { tone: 'ok', count: 0 } }))

/** @param {{ deck: Deck, openCrashes: number | null, host?: string }} parts `openCrashes`: null where nobody knows */
export function frameModel ({ deck, openCrashes, host = os.hostname() }) {
  const snapshot = deck.snapshot()
  return { app: snapshot.app.name, host, trouble: troubleOf(snapshot, { openCrashes: openCrashes ?? 0, notices: deck.notices.list() }) }
}

/**
 * What a tab says of itself: how many things want somebody, and how much.
 * @param {Status} snapshot
 * @param {{ openCrashes: number, notices: import('../events/notices.js').Notice[] }} more  `notices`: what nobody has acknowledged
 * @returns {{ tone: 'ok' | 'warn' | 'bad', count: number }}
 */
function troubleOf (snapshot, { openCrashes, notices }) {
  const { tone } = describeHealth(snapshot, { notices: notices.length })
  const slots = new Set(snapshot.workers.filter(isInTrouble).map(({ slot }) => slot)).size
  // Whoever acknowledges that the history fails has not mended it.
  const isUnsaid = snapshot.history?.problem && !notices.some(({ kind }) => kind === 'history-degraded')
  const count = slots + openCrashes + notices.length + (snapshot.rollout?.state === 'held' ? 1 : 0) + (isUnsaid ? 1 : 0)
  if (tone === 'bad') return { tone, count: Math.max(1, count) }
  return { tone: count > 0 || tone === 'warn' ? 'warn' : 'ok', count }
}

/** @param {Status['workers'][number]} worker */
function isInTrouble ({ state, crashLooping }) {
  return crashLooping || state === 'held' || state === 'unresponsive'
}
