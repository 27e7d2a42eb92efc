import { DeckError } from './errors.js'
import { sentenceOf } from './events/sentences.js'
import { createLibraryDeck } from './library/deck.js'
import { readStart } from './library/start.js'
import { startMaster } from './host/master.js'
import { oneLine } from './system/one-line.js'

export { DeckError }

/**
 * @typedef {import('./library/types.js').StartOptions} StartOptions
 * @typedef {import('./library/tables.js').DeckOptions} DeckOptions
 * @typedef {import('./library/tables.js').EventType} EventType
 * @typedef {import('./library/types.js').Deck} Deck
 * @typedef {import('./library/types.js').DeckEvents} DeckEvents
 * @typedef {import('./library/types.js').DeckEvent} DeckEvent
 * @typedef {import('./library/types.js').Status} Status
 * @typedef {import('./library/types.js').WorkerStatus} WorkerStatus
 * @typedef {import('./library/types.js').Release} Release
 * @typedef {import('./library/types.js').Rollout} Rollout
 * @typedef {import('./library/types.js').RolloutStep} RolloutStep
 * @typedef {import('./library/types.js').Strategy} Strategy
 * @typedef {import('./errors.js').ErrorCode} ErrorCode
 */

/**
 * Runs an app as a cluster whose master is in this process. No config file and no variable is read that was not asked for,
 * no signal is listened to, and nothing is printed.
 * @param {StartOptions} [options]
 * @returns {Promise<Deck>} once every worker is ready
 * @throws {DeckError} then nothing is left of it
 */
export async function start (options = {}) {
  const { config, surroundings, signal } = await readStart(options)
  if (signal?.aborted) throw gaveUp(signal, [])
  const master = await startMaster(config, surroundings)
  const deck = createLibraryDeck(master)
  const problem = await whyNotRunning(master, signal)
  if (!problem) return deck
  await deck.stop()
  throw problem
}

/** @param {import('./host/master.js').Master} master @param {AbortSignal | undefined} signal @returns {Promise<DeckError | null>} */
async function whyNotRunning ({ deck, running, startBlocked, stopped, waitingFor }, signal) {
  let lastExit = ''
  const unsubscribe = deck.events.subscribe((event) => { if (event.type === 'worker.exited') lastExit = oneLine(sentenceOf(event)) })
  /** @type {PromiseWithResolvers<void>} */
  const aborted = Promise.withResolvers()
  signal?.addEventListener('abort', () => aborted.resolve(), { once: true })
  if (signal?.aborted) aborted.resolve()
  const problem = await Promise.race([
    running.then(() => null),
    startBlocked.then(({ message }) => new DeckError('start-failed', message)),
    stopped.then(() => new DeckError('start-failed', 'the deck was stopped before all of its workers were ready')),
    aborted.promise.then(() => gaveUp(/** @type {AbortSignal} */ (signal), [lastExit, waitingFor()]))
  ])
  unsubscribe()
  return problem
}

/** @param {AbortSignal} signal @param {(string | null)[]} why */
function gaveUp ({ reason }, why) {
  return new DeckError('start-failed', ['the start was given up', ...why.filter(Boolean)].join('; '), { cause: reason })
}
