import { DeckError } from '../errors.js'
import { sendRequest } from '../system/http.js'
import { isAlive } from '../system/process-identity.js'
import { runningDecks } from '../system/running-decks.js'

/** A command that waits for nothing has an answer, or says why there is none, within 5 s. */
export const ANSWER_WITHIN_MS = 4000

/**
 * Whether anybody answers where a command is about to ask. The keeper holds the admin port open while no master lives, and
 * one that hangs does not close it: both look as if an answer were on its way.
 * @param {Pick<import('./find-master.js').Master, 'url' | 'fingerprint' | 'recipient' | 'dataDir'>} master
 * @param {{ env: Record<string, string | undefined>, withinMs?: number }} how
 * @throws {DeckError} no-master, timed-out: with what is known
 */
export async function checkAnswers ({ url, fingerprint, recipient, dataDir }, { env, withinMs = ANSWER_WITHIN_MS }) {
  const signal = AbortSignal.timeout(withinMs)
  try {
    // No secret goes along.
    const response = await sendRequest(`${url}/healthz`, { signal, fingerprint, recipient: null, headers: {} })
    response.resume()
  } catch {
    // What else is wrong is said by the request that counts.
    if (signal.aborted) throw silent({ url, pid: recipient?.processes[0].pid ?? null, dataDir }, env, withinMs)
  }
}

/** @param {{ url: string, pid: number | null, dataDir: string }} master @param {Record<string, string | undefined>} env @param {number} withinMs */
function silent ({ url, pid, dataDir }, env, withinMs) {
  const keeper = keeperOf(dataDir, env)
  if (pid === null) return new DeckError('timed-out', `nobody answers at ${url} within ${withinMs} ms`)
  if (isAlive({ pid, startTime: null })) {
    const end = keeper === null ? `end it by kill -KILL ${pid}` : `its keeper (pid ${keeper}) replaces one that hangs (keeper.hungAfterMs); two SIGTERM to the keeper end everything`
    return new DeckError('timed-out', `the master (pid ${pid}) does not answer at ${url} within ${withinMs} ms: it hangs, is stopped or starts; ${end}`)
  }
  const next = keeper === null ? 'nobody starts another one' : `its keeper (pid ${keeper}) starts another one, and has said on stderr why that comes to nothing`
  return new DeckError('no-master', `the master (pid ${pid}) of ${dataDir} has ended; ${next}`)
}

/** @param {string} dataDir @param {Record<string, string | undefined>} env @returns {number | null} */
function keeperOf (dataDir, env) {
  try {
    const keeper = runningDecks(env).find((deck) => deck.dataDir === dataDir)?.keeper
    return keeper && isAlive(keeper) ? keeper.pid : null
  } catch (error) {
    // runtime-dir-unusable: nothing more is known.
    if (error instanceof DeckError) return null
    throw error
  }
}
