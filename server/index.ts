import { DeckError, type ErrorCode } from './errors.ts'
import { sentenceOf } from './events/sentences.ts'
import { createLibraryDeck, type OwnMaster } from './library/deck.ts'
import { readStart } from './library/start.ts'
import { inForeground } from './host/foreground.ts'
import { startHost } from './host/master.ts'
import { oneLine } from './system/one-line.ts'
import type { Deck, StartOptions } from './library/types.ts'

export { DeckError }
export type { ErrorCode }
export type { Deck, DeckEvents, StartOptions } from './library/types.ts'
export type { DeckEvent, DeckOptions, EventType, Release, Rollout, RolloutStep, Status, Strategy,
  Worker } from './library/records.ts'

/**
 * Runs an app as a cluster whose master is in this process. No config file and no variable is read that was not asked
 * for, no signal is listened to, and nothing is printed. Returns once every worker is ready.
 * @throws {DeckError} then nothing is left of it
 */
export async function start (options: StartOptions = {}): Promise<Deck> {
  const { config, reload, surroundings, signal } = await readStart(options)
  if (signal?.aborted) throw gaveUp(signal, [])
  const { parts: [{ app }], ...process } = await startHost(
    async () => ({ config, makeKind: inForeground({ config, reload, order: null }) }),
    surroundings
  )
  const master = { ...process, app }
  const deck = createLibraryDeck(master)
  const problem = await whyNotRunning(master, signal)
  if (!problem) return deck
  await deck.stop()
  throw problem
}

async function whyNotRunning ({ app: { deck, supervisor: { running, startBlocked, waitingFor } }, stopped }: OwnMaster,
  signal: AbortSignal | undefined): Promise<DeckError | null>
{
  let lastExit = ''
  const unsubscribe = deck.events.subscribe((event) => {
    if (event.type === 'worker.exited') lastExit = oneLine(sentenceOf(event))
  })
  const aborted: PromiseWithResolvers<void> = Promise.withResolvers()
  signal?.addEventListener('abort', () => aborted.resolve(), { once: true })
  if (signal?.aborted) aborted.resolve()
  const problem = await Promise.race([running.then(() => null),
    startBlocked.then(({ message }) => new DeckError('start-failed', message)),
    stopped.then(() => new DeckError('start-failed', 'the deck was stopped before all of its workers were ready')),
    aborted.promise.then(() => gaveUp(signal as AbortSignal, [lastExit, waitingFor()]))])
  unsubscribe()
  return problem
}

function gaveUp ({ reason }: AbortSignal, why: (string | null)[]) {
  return new DeckError('start-failed', ['the start was given up', ...why.filter(Boolean)].join('; '), { cause: reason })
}
