import { openApp } from '../../server/app/app.js'
import { recordPast, startWorkers } from '../../server/app/start.js'
import { connectKeeper } from '../../server/keeper/link.js'
import { createClosers } from '../../server/system/closers.js'
import { openDataDir } from '../../server/system/data-dir.js'

const PATIENCE_MS = 90_000

/**
 * Runs an app in this very process as one of several, without a page: real workers, history and releases. It ends with the test.
 * @param {import('./deck.js').TestOwner} t
 * @param {Omit<import('../../server/app/app.js').AppSource, 'dataDir'>} source
 */
export async function startAppHere (t, source) {
  const closers = createClosers()
  /** @type {string[]} */
  const said = []
  const say = (/** @type {unknown} */ text) => { said.push(String(text)) }
  const host = {
    keeper: await connectKeeper({}),
    closers,
    log: /** @type {any} */ ({ error: (/** @type {any} */ fields, /** @type {string} */ text) => say(`${text}: ${fields.err?.stack}`), warn: say, fatal: say }),
    terminal: /** @type {any} */ ({ show () {}, line: say, fail: say, quote: say }),
    streams: process,
    software: { version: '0.0.0', nodeVersion: process.version },
    others: /** @type {any} */ ({ list: () => [] }),
    fleet: () => null,
    joinsFleet: false,
    turns: null,
    rolloutTurns: null
  }
  const app = await openApp({ ...source, dataDir: openDataDir(source.config.dataDir) }, host)
  const { events, supervisor, deck } = app
  /** @type {import('../../server/events/stream.js').DeckEvent[]} */
  const seen = []
  events.subscribe((event) => { seen.push(event) })
  startWorkers(app, host, recordPast(app, host))
  t.after(stop)

  return {
    ...app,
    /** What the log and the terminal have got. */
    said,
    stop,
    url: () => String(supervisor.addresses()[0]),

    /** @param {(event: import('../../server/events/stream.js').DeckEvent) => unknown} isIt @returns {Promise<any>} the first one, from the start on */
    untilEvent (isIt) {
      return new Promise((resolve, reject) => {
        const found = seen.find(isIt)
        if (found) return resolve(found)
        const timer = setTimeout(() => settle(() => reject(new Error(`it did not happen; what did: ${seen.map(({ type, message }) => `${type}: ${message}`).join('\n')}`))), PATIENCE_MS)
        const unsubscribe = events.subscribe((event) => { if (isIt(event)) settle(() => resolve(event)) })

        /** @param {() => void} then */
        function settle (then) {
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
