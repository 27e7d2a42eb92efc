import { DeckError } from '../errors.ts'
import { runningDeckAt } from '../system/running-decks.ts'
import { createApiClient } from './api-client.ts'
import { findMaster, findRunning } from './find-master.ts'
import { ANSWER_WITHIN_MS } from './reachable.ts'
import type { Status } from '../api/cluster.ts'

/** `problem`: why there is no status */
export type DeckStatus = { status: Status | null, problem: string | null }
export type Place = { env: Record<string, string | undefined>, cwd: string }

/** Where somebody looks at several decks, these variables are meant for one of them at most. */
const OF_ONE_DECK = Object.freeze({ CLUSTERDECK_URL: undefined, CLUSTERDECK_TOKEN: undefined,
  CLUSTERDECK_TOKEN_FILE: undefined, CLUSTERDECK_NAME: undefined, CLUSTERDECK_APP: undefined,
  CLUSTERDECK_DATA_DIR: undefined })

export function withoutPlace (env: Place['env']): Place['env'] {
  return { ...env, ...OF_ONE_DECK }
}

export function findMasterAt (dataDir: string, { env, cwd }: Place) {
  return findMaster({ dataDir }, { env: withoutPlace(env), cwd })
}

/** `dataDir`: absolute @returns within a few seconds */
export async function readDeckStatus (dataDir: string, place: Place): Promise<DeckStatus> {
  try {
    const api = createApiClient(await findMasterAt(dataDir, place), { timeoutMs: ANSWER_WITHIN_MS })
    return { status: await api.get('/status'), problem: null }
  } catch (error) {
    if (error instanceof DeckError) return { status: null, problem: error.message }
    throw error
  }
}

/** `dataDir`: absolute @returns also true while its master is being replaced */
export async function isRunning (dataDir: string, place: Place): Promise<boolean> {
  if (runningDeckAt(dataDir, place.env)) return true
  // The deck may have another runtime folder, or its pid may be another process now.
  return findRunning(dataDir, place.env) !== null && (await readDeckStatus(dataDir, place)).status !== null
}
