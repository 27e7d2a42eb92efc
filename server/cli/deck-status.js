import { DeckError } from '../errors.js'
import { runningDeckAt } from '../system/running-decks.js'
import { createApiClient } from './api-client.js'
import { findMaster, findRunning } from './find-master.js'
import { ANSWER_WITHIN_MS } from './reachable.js'

/** @typedef {import('../api/cluster.js').Status} Status */
/** @typedef {{ status: Status | null, problem: string | null }} DeckStatus `problem`: why there is no status */
/** @typedef {{ env: Record<string, string | undefined>, cwd: string }} Place */

/** Where somebody looks at several decks, these variables are meant for one of them at most. */
const OF_ONE_DECK = Object.freeze({
  CLUSTERDECK_URL: undefined,
  CLUSTERDECK_TOKEN: undefined,
  CLUSTERDECK_TOKEN_FILE: undefined,
  CLUSTERDECK_NAME: undefined,
  CLUSTERDECK_APP: undefined,
  CLUSTERDECK_DATA_DIR: undefined
})

/** @param {Place['env']} env @returns {Place['env']} */
export function withoutPlace (env) {
  return { ...env, ...OF_ONE_DECK }
}

/** @param {string} dataDir @param {Place} place */
export function findMasterAt (dataDir, { env, cwd }) {
  return findMaster({ dataDir }, { env: withoutPlace(env), cwd })
}

/** @param {string} dataDir absolute @param {Place} place @returns {Promise<DeckStatus>} within a few seconds */
export async function readDeckStatus (dataDir, place) {
  try {
    const api = createApiClient(await findMasterAt(dataDir, place), { timeoutMs: ANSWER_WITHIN_MS })
    return { status: await api.get('/status'), problem: null }
  } catch (error) {
    if (error instanceof DeckError) return { status: null, problem: error.message }
    throw error
  }
}

/** @param {string} dataDir absolute @param {Place} place @returns {Promise<boolean>} also true while its master is being replaced */
export async function isRunning (dataDir, place) {
  if (runningDeckAt(dataDir, place.env)) return true
  // The deck may have another runtime folder, or its pid may be another process now.
  return findRunning(dataDir, place.env) !== null && (await readDeckStatus(dataDir, place)).status !== null
}
