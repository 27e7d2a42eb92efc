import { setTimeout as wait } from 'node:timers/promises'
import { inStopOrder } from '../config/app-order.js'
import { DeckError } from '../errors.js'
import { isAlive, signalProcess } from '../system/process-identity.js'
import { runningDeckAt } from '../system/running-decks.js'
import { createApiClient } from './api-client.js'
import { checkedApps, findApps } from './apps.js'
import { timeoutOf } from './duration.js'
import { dataDirOfApp, findRunning } from './find-master.js'
import { isRunning, findMasterAt } from './deck-status.js'
import { formatTable, jsonText } from './output.js'

/** @typedef {import('./deck-status.js').Place} Place */

const POLL_MS = 50
const ANSWER_WITHIN_MS = 2000

/**
 * Stops apps, each once those that depend on it have stopped.
 * @param {string[]} names none: all @param {{ config?: string, timeout?: string, json?: true }} options @param {import('./program.js').Terminal} terminal
 * @throws {DeckError} usage, invalid-config; timed-out: some still run
 */
export async function downCommand (names, options, terminal) {
  const { stdout, env, cwd } = terminal
  const { timeoutMs, text } = timeoutOf(options, env)
  const found = await findApps('down', options, terminal)
  const wanted = checkedApps('down', names, found)
  const outcomes = await inStopOrder(found.apps, wanted, async (name) => {
    return { name, ...await stopDeck(dataDirOfApp(found, name, cwd), { env, cwd }, AbortSignal.timeout(timeoutMs)) }
  })
  const table = formatTable(['NAME', 'STATE'], outcomes.map(({ name, state, reason }) => [name, reason ?? state]))
  stdout.write(`${options.json ? jsonText(outcomes) : table}\n`)
  const going = outcomes.filter(({ state }) => state === 'running').map(({ name }) => name)
  if (going.length > 0) throw new DeckError('timed-out', `${going.join(', ')}: not stopped within ${text} (--timeout)`)
}

/**
 * Lets the deck of a data folder finish its requests, and waits for its end.
 * @param {string} dataDir absolute @param {Place} place @param {AbortSignal} signal
 * @returns {Promise<{ state: 'stopped' | 'not running' | 'running', reason: string | null }>}
 */
export async function stopDeck (dataDir, place, signal) {
  if (!await isRunning(dataDir, place)) return { state: 'not running', reason: null }
  const processes = processesAt(dataDir, place)
  const isGone = () => !processes.some(isAlive) && runningDeckAt(dataDir, place.env) === null && findRunning(dataDir, place.env) === null
  const problem = await askToStop(dataDir, place)
  while (!isGone()) {
    if (signal.aborted) return { state: 'running', reason: problem ?? 'still stopping' }
    await wait(POLL_MS)
  }
  return { state: 'stopped', reason: null }
}

/** @param {string} dataDir @param {Place} place */
function processesAt (dataDir, { env }) {
  const { keeper = null, master = null } = runningDeckAt(dataDir, env) ?? {}
  return [keeper, master].filter((each) => each !== null)
}

/** @param {string} dataDir @param {Place} place @returns {Promise<string | null>} why it may not stop */
async function askToStop (dataDir, place) {
  try {
    await createApiClient(await findMasterAt(dataDir, place), { timeoutMs: ANSWER_WITHIN_MS }).post('/stop')
    return null
  } catch (error) {
    if (!(error instanceof DeckError)) throw error
    // Where the master has just died or hangs, the keeper stops the deck.
    const alive = error.code === 'stopping' ? undefined : processesAt(dataDir, place).find(isAlive)
    if (alive) signalProcess(alive, 'SIGTERM')
    return error.message
  }
}
