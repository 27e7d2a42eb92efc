import os from 'node:os'
import { countOpen } from '../health.js'

/**
 * The frame around every page: the name of the app, and the current problems.
 * @typedef {ReturnType<typeof frameModel>} Frame
 * @typedef {Pick<import('../deck.js').Deck, 'snapshot' | 'health'>} Deck
 */

/** The elements around every page that change, by id; each is the partial of the same name. */
const FRAGMENTS = Object.freeze(['trouble', 'open-crashes'])
/** Only in a fleet is there a place for the number of its silent hosts. */
const FLEET_FRAGMENTS = Object.freeze([...FRAGMENTS, 'silent-count'])

/** The frame of a page that is shown without a cluster. @type {Frame} */
export const NO_FRAME = { app: 'clusterdeck', host: '', trouble: { tone: 'ok', count: 0 } }

/**
 * What the parts around every page are made of.
 * @param {Deck & Pick<import('../deck.js').Deck, 'crashes' | 'fleet'>} deck
 */
export function frameParts (deck) {
  return { openCrashes: countOpen(deck.crashes), silentHosts: deck.fleet?.silences().length, frame: frameModel({ deck }) }
}

/** @param {{ fleet: object | null }} deck */
export function frameFragments ({ fleet }) {
  return fleet ? FLEET_FRAGMENTS : FRAGMENTS
}

/** @param {{ deck: Deck, host?: string }} parts */
export function frameModel ({ deck, host = os.hostname() }) {
  const snapshot = deck.snapshot()
  return { app: snapshot.app.name, host, trouble: troubleOf(deck.health(snapshot)) }
}

/**
 * What the tab of the browser shows.
 * @param {import('../health.js').Health} health @returns {{ tone: 'ok' | 'warn' | 'bad', count: number }}
 */
function troubleOf ({ tone, problems: count }) {
  if (tone === 'bad') return { tone, count }
  return { tone: count > 0 || tone === 'warn' ? 'warn' : 'ok', count }
}
