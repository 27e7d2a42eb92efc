import path from 'node:path'
import { tempFolder } from '../support/folder.js'
import { freePort } from '../support/ports.js'

/**
 * Where a program is to be, and what it may use there.
 * @typedef {object} Place
 * @property {string} folder where it is installed
 * @property {number} port a free one
 * @property {number} secondPort another one
 * @property {string} state an empty folder, for whatever it keeps
 * @property {string} socket the path of a Unix socket
 * @property {string} upstream an HTTP server for proxies to ask
 */

/** @param {string} folder @param {string} upstream @returns {Promise<Place>} */
export async function findPlace (folder, upstream) {
  const port = await freePort()
  let secondPort = port
  while (secondPort === port) secondPort = await freePort()
  const state = tempFolder()
  return { folder, port, secondPort, state, socket: path.join(state, 'app.sock'), upstream }
}
