import os from 'node:os'
import { describeHealth } from '../health.js'

/**
 * The frame around every page: the name of the app, and the current problems.
 * @typedef {ReturnType<typeof frameModel>} Frame
 * @typedef {Pick<import('../deck.js').Deck, 'snapshot' | 'notices' | 'jobs'>} Deck
 * @typedef {import('../deck.js').Status} Status
 */

/** The elements around the pages that change, by id; each is the partial of the same name. */
export const FRAME_FRAGMENTS = Object.freeze(['trouble', 'open-crashes'])

/** The frame of a page that is shown without a cluster. @type {Frame} */
export const NO_FRAME = { app: 'clusterdeck', host: '', trouble: { tone: 'ok', count: 0 } }

/** @param {{ deck: Deck, openCrashes: number | null, host?: string }} parts `openCrashes`: null if unknown */
export function frameModel ({ deck, openCrashes, host = os.hostname() }) {
  const snapshot = deck.snapshot()
  return { app: snapshot.app.name, host, trouble: troubleOf(snapshot, { openCrashes: openCrashes ?? 0, notices: deck.notices.list(), failingJobs: deck.jobs.failing() }) }
}

/**
 * Counts the problems for the tab of the browser, and says how bad they are.
 * @param {Status} snapshot
 * @param {{ openCrashes: number, notices: import('../events/notices.js').Notice[], failingJobs: ReturnType<Deck['jobs']['failing']> }} more  `notices`: those that nobody has acknowledged
 * @returns {{ tone: 'ok' | 'warn' | 'bad', count: number }}
 */
function troubleOf (snapshot, { openCrashes, notices, failingJobs }) {
  const { tone } = describeHealth(snapshot, { notices: notices.length, failingJobs })
  const slots = new Set(snapshot.workers.filter(isInTrouble).map(({ slot }) => slot)).size
  // A history that fails stays a problem after its notice was acknowledged.
  const isHistoryUnreported = snapshot.history?.problem && !notices.some(({ kind }) => kind === 'history-degraded')
  const count = slots + openCrashes + notices.length + failingJobs.length + (snapshot.rollout?.state === 'held' ? 1 : 0) + (isHistoryUnreported ? 1 : 0)
  if (tone === 'bad') return { tone, count: Math.max(1, count) }
  return { tone: count > 0 || tone === 'warn' ? 'warn' : 'ok', count }
}

/** @param {Status['workers'][number]} worker */
function isInTrouble ({ state, crashLooping }) {
  return crashLooping || state === 'held' || state === 'unresponsive'
}
