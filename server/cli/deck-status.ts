import { DeckError } from '../errors.ts'
import { runningDeckAt } from '../system/running-decks.ts'
import { createApiClient } from './api-client.ts'
import { findMasterAt, findRunning } from './find-master.ts'
import { isOpen } from './host.ts'
import { ANSWER_WITHIN_MS } from './reachable.ts'
import type { Status } from '../api/cluster.ts'
import type { KnownApp } from './known-apps.ts'
import type { Place } from './program.ts'

/** `problem`: why there is no status */
export type DeckStatus = { status: Status | null, problem: string | null }

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

/** Asks each app that runs how it is. Returns the same with `answer`: null: it does not run. */
export async function askApps<App extends KnownApp> (apps: readonly App[],
  place: Place): Promise<(App & { answer: DeckStatus | null })[]>
{
  return await Promise.all(
    apps.map(async (app) => ({ ...app,
      answer: isOpen(app) && app.dataDir !== null ? await readDeckStatus(app.dataDir, place) : null })
    )
  )
}

/** `dataDir`: absolute @returns also true while its master is being replaced */
export async function isRunning (dataDir: string, place: Place): Promise<boolean> {
  if (runningDeckAt(dataDir, place.env)) return true
  // The deck may have another runtime folder, or its pid may be another process now.
  return findRunning(dataDir, place.env) !== null && (await readDeckStatus(dataDir, place)).status !== null
}
