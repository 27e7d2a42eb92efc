import { appsOf } from '../config/apps.js'
import { readConfigFile } from '../config/file.js'
import { didYouMean } from '../config/nearest.js'
import { DeckError } from '../errors.js'
import { runningDecks } from '../system/running-decks.js'
import { dataDirOfApp } from './find-master.js'
import { appsOfHost } from './host.js'
import { rememberedApps, withoutHost } from './remembered.js'

/** @typedef {import('./host.js').AppView} AppView */
/** @typedef {import('./deck-status.js').Place} Place */

/**
 * An app that a command is for.
 * @typedef {object} Target
 * @property {string} name
 * @property {string | null} dataDir absolute; null: its configuration cannot be read
 * @property {AppView | null} view as the host has it; null: it is no app of the host
 * @property {{ app: string } | { dataDir: string } | { name: string }} place by which its master is found
 */

/**
 * Finds apps by name: those of the config file in the working folder first, then those of the host, then decks in the foreground.
 * @param {string} command for messages @param {readonly string[]} names @param {Place} place
 * @returns {Promise<Target[]>} as the names
 * @throws {DeckError} usage: some name is of none, or of several; nothing was done then
 */
export async function findTargets (command, names, { env, cwd }) {
  /** @type {unknown} */
  let failure = null
  const views = await appsOfHost(env).catch((error) => {
    failure = error
    return []
  })
  const apps = [...await appsOfFolder(views, { env, cwd }), ...views.map(toTarget)]
  const decks = decksOutside(views, env)
  return names.map((name) => {
    const app = apps.find((each) => each.name === name)
    const [deck, ...same] = decks.filter((each) => each.name === name)
    const remembered = app || deck ? undefined : rememberedApps(env).find((each) => each.name === name)
    if (!app && !deck) throw failure ?? (remembered ? withoutHost(remembered) : unknownApp(command, name, [...apps, ...decks]))
    if (!app && same.length > 0) throw ambiguousName(command, [deck, ...same])
    return app ?? deck
  })
}

/**
 * @param {Place['env']} env @param {(app: AppView) => boolean} isWanted
 * @returns {Promise<Target[]>} of the apps of the host, by name
 */
export async function allTargets (env, isWanted) {
  return (await appsOfHost(env)).filter(isWanted).map(toTarget)
}

/** @param {AppView} view @returns {Target} */
function toTarget (view) {
  const { name, dataDir } = view
  return { name, dataDir, view, place: dataDir === null ? { name } : { dataDir } }
}

/** @param {AppView[]} views @param {Place} place @returns {Promise<Target[]>} */
async function appsOfFolder (views, { env, cwd }) {
  const file = await readConfigFile(env.CLUSTERDECK_CONFIG || undefined, cwd)
  return [...file ? appsOf(file).keys() : []].map((name) => {
    const dataDir = dataDirOfApp(file, name, cwd)
    return { name, dataDir, view: views.find((view) => view.dataDir === dataDir) ?? null, place: { app: name } }
  })
}

/** @param {AppView[]} views @param {Place['env']} env @returns {Target[]} */
function decksOutside (views, env) {
  const inside = new Set(views.map(({ dataDir }) => dataDir))
  return runningDecks(env).filter(({ dataDir }) => !inside.has(dataDir)).map(({ name, dataDir }) => ({ name, dataDir, view: null, place: { dataDir } }))
}

/** @param {string} command @param {string} name @param {Target[]} known */
function unknownApp (command, name, known) {
  const names = [...new Set(known.map((each) => each.name))].sort()
  const expected = names.length === 0 ? 'an app, and there is none' : `some of ${names.join(', ')}`
  return new DeckError('usage', `${command}: expected ${expected}, received ${JSON.stringify(name)}${didYouMean(name, names)}`)
}

/** @param {string} command @param {Target[]} same */
function ambiguousName (command, same) {
  const folders = same.map(({ dataDir }) => dataDir).join(', ')
  return new DeckError('usage', `${command}: expected the name of one deck, received ${JSON.stringify(same[0].name)}, which ${same.length} decks have; choose one by --data-dir: ${folders}`)
}
