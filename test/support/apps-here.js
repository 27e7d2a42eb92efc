import { createAppList } from '../../server/host/app-list.js'
import { createApps } from '../../server/host/apps.js'
import { createEventStream } from '../../server/events/stream.js'
import { createJointUpgrade } from '../../server/handover/joint-upgrade.js'
import { createAppScopes } from '../../server/host/app-scopes.js'
import { createAppLinks } from '../../server/keeper/app-links.js'
import { createTurns } from '../../server/host/turns.js'
import { tempFolder } from './folder.js'
import { untilFound } from './until.js'

/**
 * Runs the apps of a host in this very process, without a page and a keeper: real workers, histories and releases.
 * @param {import('./deck.js').TestOwner} t
 * @param {{ folder?: string, rolloutsAtOnce?: number }} [how]  `folder`: of a host before
 */
export function hostAppsHere (t, { folder = tempFolder(), rolloutsAtOnce = 2 } = {}) {
  /** @type {string[]} */
  const said = []
  const scopes = createAppScopes({ onLateFault: (error, app) => console.error(`late, of ${app}`, error) })
  const say = (/** @type {string} */ text) => { said.push(text) }
  const sayError = (/** @type {any} */ fields, /** @type {string} */ text) => say(`${text}: ${fields.err?.stack}`)
  const log = { error: sayError, warn: sayError }
  const events = createEventStream()
  /** @type {string[]} */
  const told = []
  events.subscribe(({ type, detail, message }) => { told.push([type, detail?.app, message].filter(Boolean).join(' ')) })
  const keeper = /** @type {any} */ ({ isKept: false, role: 'current', predecessor: null, exits: [], reaps: false, held: new Map(), hold () {}, drop () {}, send () {}, on () {}, onLost () {}, offLost () {}, rememberedApps: () => [], memoryOf: () => ({ read: () => null, write: () => false }), spareOf: () => ({ events: [], keep () {}, clear () {} }) })
  /** @type {string[]} */
  const forgotten = []
  const apps = createApps({
    list: createAppList(folder, log),
    lent: {
      links: createAppLinks(keeper),
      scopes,
      log: /** @type {any} */ (log),
      terminalOf: () => /** @type {any} */ ({ show () {}, line: say, fail: say, quote: say, resolved () {} }),
      turns: createTurns({ atOnce: 2 }),
      rolloutTurns: createTurns({ atOnce: rolloutsAtOnce, turnMs: 60_000 }),
      upgrade: createJointUpgrade(keeper, { turnMs: 3000, events }),
      streams: process,
      software: { version: '0.0.0', nodeVersion: process.version },
      others: /** @type {any} */ ({ list: () => [] }),
      fleetMembership: { isWanted: false, of: () => null, enter: () => async () => {} },
      addressOf: (name) => ({ adminUrl: `http://127.0.0.1:9/apps/${name}`, publicUrl: null, fingerprint: null, host: folder })
    },
    forget: (name) => { forgotten.push(name) },
    events,
    log
  })
  t.after(async () => {
    await apps.leave('test')
    scopes.close()
  })

  return {
    ...apps,
    folder,
    said,
    told,
    forgotten,

    /** @param {string} name @param {(view: import('../../server/host/apps.js').AppView) => unknown} isIt */
    until (name, isIt) {
      const look = () => {
        const view = apps.view(name)
        return isIt(view) ? view : null
      }
      // Often enough for what does not last.
      return untilFound(look, () => `${name} to get there: ${JSON.stringify(apps.view(name))}; ${said.join('\n')}`, { everyMs: 20 })
    }
  }
}

/**
 * An order for an app that answers with its name.
 * @param {string} name @param {{ flags?: Record<string, string>, dependsOn?: string[], cwd?: string }} [more]
 * @returns {import('../../server/host/apps.js').AppOrder}
 */
export function orderOf (name, { flags = {}, dependsOn = [], cwd = tempFolder() } = {}) {
  return { name, cwd, flags: { entry: 'app.js', workers: '1', ...flags }, env: { PATH: String(process.env.PATH) }, dependsOn }
}
