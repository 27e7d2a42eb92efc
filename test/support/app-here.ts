import assert from 'node:assert/strict'
import { openApp, type AppSource } from '../../server/app/app.ts'
import { recordPast, startWorkers } from '../../server/app/start.ts'
import { connectKeeper } from '../../server/keeper/link.ts'
import { createClosers } from '../../server/system/closers.ts'
import { openDataDir } from '../../server/system/data-dir.ts'
import { fake } from './fake.ts'
import type { TestOwner } from './deck.ts'
import type { RunsStore } from '../../server/app/runs.ts'
import type { SeenEvent } from './event-log.ts'
import type { OtherDecks } from '../../server/system/other-decks.ts'

const PATIENCE_MS = 90_000

/** What runs is kept as long as this process. */
export function createRunsHere (): RunsStore {
  let kept: unknown = null
  return { read: () => kept, save (runs) {
    kept = runs
  }, stored: async () => {}, isStored: () => true }
}

/**
 * Runs an app in this very process as one of several, without a page: real workers, history and releases. It ends with
 * the test.
 */
export async function startAppHere (t: TestOwner,
  source: Pick<AppSource, 'config' | 'environment'> & Partial<AppSource>)
{
  const closers = createClosers()
  const said: string[] = []
  const say = (text: unknown) => {
    said.push(String(text))
  }
  const host = { keeper: await connectKeeper({}), closers,
    log: { error: (fields: { err?: Error }, text: string) => say(`${text}: ${fields.err?.stack}`), warn: say,
      fatal: say, close () {} },
    terminal: { show () {}, line: say, fail: say, quote: say, started () {}, resolved () {} }, streams: process,
    software: { version: '0.0.0', nodeVersion: process.version }, others: fake<OtherDecks>({ list: () => [] }),
    fleet: () => null, joinsFleet: false, turns: null, rolloutTurns: null, isShared: false, publicUrl: () => null,
    upgrade: { join: () => () => {}, begin: () => assert.fail('this app has no host') } }
  const app = await openApp({ dataDir: openDataDir(source.config.dataDir), reload: async () => source.config,
    runs: createRunsHere(), order: null, source: () => ({ order: null, inherited: source.environment }), ...source },
    host)
  const { events, supervisor, deck } = app
  const seen: SeenEvent[] = []
  events.subscribe((event) => {
    seen.push(event as SeenEvent)
  })
  startWorkers(app, host, recordPast(app, host))
  t.after(stop)

  return {
    ...app,
    /** What the log and the terminal have got. */
    said,
    stop,
    url: () => String(supervisor.addresses()[0]),

    /** @returns the first one, from the start on */
    untilEvent (isIt: (event: SeenEvent) => unknown): Promise<SeenEvent> {
      return new Promise((resolve, reject) => {
        const found = seen.find(isIt)
        if (found) return resolve(found)
        const timer = setTimeout(
          () =>
            settle(() =>
              reject(new Error(`it did not happen; what did: ${
                seen.map(({ type, message }) => `${type}: ${message}`).join('\n')
              }`))
            ),
          PATIENCE_MS
        )
        const unsubscribe = events.subscribe((event) => {
          if (isIt(event as SeenEvent)) settle(() => resolve(event as SeenEvent))
        })

        function settle (then: () => void) {
          clearTimeout(timer)
          unsubscribe()
          then()
        }
      })
    }
  }

  async function stop () {
    if (!['stopping', 'stopped'].includes(deck.snapshot().state)) deck.dispatch({ type: 'stop', actor: 'test' })
    const timer = setTimeout(() => supervisor.killAll('the test is over'), PATIENCE_MS)
    await supervisor.finished
    clearTimeout(timer)
    await closers.close()
  }
}
