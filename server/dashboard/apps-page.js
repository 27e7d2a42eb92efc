import { mayUse } from '../api/roles.js'

/**
 * The list of the apps of a host, the sick first.
 * @typedef {import('../api/apps.js').AppView} AppView
 * @typedef {import('../events/kinds.js').Tone} Tone
 */

/** The elements of the page that change, by id; each is the partial of the same name. */
export const APPS_FRAGMENTS = Object.freeze(['apps'])

/** From the one that needs help most. @type {readonly Tone[]} */
const SICK_FIRST = ['bad', 'warn', 'info', 'drain', 'ok', 'idle']

/** @type {Readonly<Record<Exclude<AppView['state'], 'running'>, { tone: Tone, text: string }>>} */
const WITHOUT_WORKERS = Object.freeze({
  waiting: { tone: 'info', text: 'Waits' },
  starting: { tone: 'info', text: 'Starting' },
  stopping: { tone: 'drain', text: 'Stopping' },
  stopped: { tone: 'idle', text: 'Stopped' },
  failed: { tone: 'bad', text: 'Cannot run' }
})

/** @param {{ apps: Pick<import('../api/apps.js').Apps, 'list'>, can?: import('./powers.js').Powers }} parts */
export function appsModel ({ apps, can }) {
  const rows = apps.list().filter(({ name }) => mayUse(can ?? {}, name)).map(toRow)
  return { rows: rows.sort((a, b) => SICK_FIRST.indexOf(a.tone) - SICK_FIRST.indexOf(b.tone) || (a.name < b.name ? -1 : 1)) }
}

/** @param {AppView} app */
function toRow (app) {
  const { state, reason, health } = app
  const words = state === 'running' && health ? health : { hint: reason ?? '', ...WITHOUT_WORKERS[state === 'running' ? 'starting' : state] }
  return { ...app, tone: words.tone, text: words.text, hint: words.hint }
}
