import { DeckError } from '../errors.js'
import { runningDeckAt } from '../system/running-decks.js'
import { createApiClient } from './api-client.js'
import { findMaster, findRunning } from './find-master.js'
import { ANSWER_WITHIN_MS } from './reachable.js'

/**
 * What a deck says of itself, where somebody looks at several.
 * @typedef {{ status: any, problem: string | null }} Look `status`: the body of GET /status, null where `problem` says why there is none
 */

/** Said to no deck that it is not meant for. */
const OF_OTHERS = Object.freeze({ CLUSTERDECK_URL: undefined, CLUSTERDECK_TOKEN: undefined, CLUSTERDECK_TOKEN_FILE: undefined, CLUSTERDECK_NAME: undefined, CLUSTERDECK_APP: undefined })

/** @typedef {{ env: Record<string, string | undefined>, cwd: string }} Place */

/** @param {string} dataDir @param {Place} place */
export function masterAt (dataDir, { env, cwd }) {
  return findMaster({ dataDir }, { env: { ...env, ...OF_OTHERS }, cwd })
}

/** @param {string} dataDir absolute @param {Place} place @returns {Promise<Look>} soon */
export async function lookAt (dataDir, place) {
  try {
    return { status: await createApiClient(await masterAt(dataDir, place), { timeoutMs: ANSWER_WITHIN_MS }).get('/status'), problem: null }
  } catch (error) {
    if (error instanceof DeckError) return { status: null, problem: error.message }
    throw error
  }
}

/** @param {any} status @returns {boolean} whether every worker that is wanted is ready, or has done its work */
export function isReady ({ state, readyWorkers, finishedWorkers, desiredWorkers }) {
  return state === 'running' && readyWorkers + finishedWorkers >= desiredWorkers
}

/** @param {string} dataDir absolute @param {Place} place @returns {Promise<boolean>} whether a deck lives there, though its master may be between two lives */
export async function isRunning (dataDir, place) {
  if (runningDeckAt(dataDir, place.env)) return true
  // Started with another runtime folder; or another process has its pid.
  return findRunning(dataDir, place.env) !== null && (await lookAt(dataDir, place)).status !== null
}
