import { findConfigFile, loadConfig } from '../config/config.js'

/** @typedef {import('./app-list.js').AppOrder} AppOrder */
/** @typedef {import('../config/apps.js').ConfigFile} ConfigFile */

/**
 * Reads the config file of an order. A JavaScript one is run in a process of its own, which takes as long as an app needs to boot.
 * @param {AppOrder} order @returns {Promise<ConfigFile | null>} null: it has none
 * @throws {import('../errors.js').DeckError} invalid-config
 */
export async function readFileOf ({ config, env, cwd }) {
  return await findConfigFile({ config, env, cwd, isAgain: true, isApart: true })
}

/**
 * The configuration that an order means, in the folder and with the variables of the shell that it is from.
 * @param {AppOrder} order
 * @param {{ name?: string, file?: ConfigFile | null, launchIn?: string }} [how]  `file`: as it has just been read; `launchIn`: the folder in which a
 *   script is looked up
 * @returns {Promise<import('../config/config.js').Config>}
 * @throws {import('../errors.js').DeckError} invalid-config, unknown-option, entry-not-found
 */
export async function readConfigOf ({ flags, config, app, env, cwd }, { name, file, launchIn } = {}) {
  const named = name === undefined ? {} : { name }
  return await loadConfig({ flags: { ...flags, ...named, config, app }, env, cwd, isAgain: true, isApart: true, launchIn, found: file })
}
