import path from 'node:path'
import { DeckError } from '../errors.js'
import { createApiClient } from './api-client.js'
import { createTools } from './context.js'
import { namesDeck } from './deck-options.js'
import { timeoutOf } from './duration.js'
import { findMaster } from './find-master.js'
import { expectHost, findHost } from './host.js'
import { jsonText } from './output.js'
import { waitUntil } from './wait-until.js'

/** @typedef {import('./commands.js').Options} Options */
/** @typedef {import('./commands.js').Tools} Tools */
/** @typedef {import('./program.js').Terminal} Terminal */
/** @typedef {{ pid: number, version: string, nodeVersion: string }} Software  of a master */

/**
 * What is upgraded.
 * @typedef {object} Upgradable
 * @property {import('./api-client.js').ApiClient} api
 * @property {string} path  of the call that begins it
 * @property {() => Promise<{ master: Software, isRunning: boolean, failure: { key: string | number, message: string } | null }>} look  `failure`: the newest one
 */

/** What findMaster() says of a folder that is of no app, of several, or of one of the host that does not run. */
const WITHOUT_MASTER = ['usage', 'app-not-running']

/** Upgrades a deck of its own. @param {import('./commands.js').Context} context */
export async function upgradeCommand (context) {
  const { api } = context
  await changeMasters({
    api,
    path: '/upgrade',
    async look () {
      const { master, upgrade } = await api.get('/status')
      const { items: [newest] } = await api.get('/events?type=master.upgrade-failed&limit=1').catch(noneIfUnreadable)
      return { master, isRunning: upgrade !== null, failure: newest ? { key: newest.id, message: newest.message } : null }
    }
  }, context)
}

/**
 * Upgrades the host, with all of its apps, unless a deck of its own is meant.
 * @param {Options} options @param {Terminal} terminal
 * @returns {Promise<Options | null>} null: that is done
 */
export async function upgradeHost (options, terminal) {
  const master = await findHostMeant(options, terminal)
  if (master === null) return options
  const { timeoutMs } = timeoutOf(options, terminal.env)
  const findAgain = async () => await findHostMeant(options, terminal) ?? expectHost(terminal.env)
  const api = createApiClient(master, { timeoutMs, findAgain })
  await changeMasters({
    api,
    path: '/host/upgrade',
    async look () {
      const { upgrade, upgradeFailure, ...software } = await api.get('/host')
      return { master: software, isRunning: upgrade !== null, failure: upgradeFailure && { key: upgradeFailure.at, message: upgradeFailure.message } }
    }
  }, { ...createTools(options, terminal), options, timeoutMs })
  return null
}

/**
 * The host of the app that is meant, or of this user where no app that runs is meant.
 * @param {Options} options @param {Terminal} terminal
 * @returns {Promise<import('./find-master.js').Master | null>} null: it is a deck of its own
 * @throws {DeckError} as findMaster() does
 */
async function findHostMeant (options, { env, cwd }) {
  try {
    const { app, ...master } = await findMaster(options, { env, cwd })
    return app && { ...master, url: app.hostUrl, app: null }
  } catch (error) {
    const host = error instanceof DeckError && WITHOUT_MASTER.includes(error.code) && !namesDeck(options, env) ? findHost(env) : null
    if (host === null) throw error
    return host
  }
}

/** @param {Upgradable} upgradable @param {Pick<Tools, 'print' | 'tell'> & { options: Options, timeoutMs: number }} how */
async function changeMasters ({ api, path: place, look }, { options, print, tell, timeoutMs }) {
  const before = await look()
  const started = await api.post(place, { execPath: options.node === undefined ? undefined : path.resolve(options.node), note: options.note })
  if (!options.wait) {
    print(options.json ? jsonText(started) : 'upgrade started')
    return
  }
  tell('upgrade started: the next master starts its workers')
  let now = before
  await waitUntil(async () => {
    const seen = await look().catch(nullIfNoMaster)
    if (seen === null || seen.isRunning) return false
    now = seen
    // The old master may answer for a moment after it has handed over.
    return now.master.pid !== before.master.pid || now.failure?.key !== before.failure?.key
  }, api.signal, timeoutMs)
  const { master, failure } = now
  if (master.pid === before.master.pid) throw new DeckError('upgrade-failed', `the upgrade failed: ${failure?.message}`)
  print(options.json ? jsonText(master) : `upgraded to clusterdeck ${master.version} on Node ${master.nodeVersion} (pid ${master.pid})`)
}

/** An upgrade may be what mends the history. @param {unknown} error @returns {{ items: import('../api/events.js').Event[] }} */
function noneIfUnreadable (error) {
  if (error instanceof DeckError && error.code === 'history-unavailable') return { items: [] }
  throw error
}

/** Between two masters a connection may end without an answer. @param {unknown} error */
function nullIfNoMaster (error) {
  if (error instanceof DeckError && error.code === 'no-master') return null
  throw error
}
