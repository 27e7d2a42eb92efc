import { once } from 'node:events'
import net from 'node:net'
import path from 'node:path'
import { tempFolder } from '../support/folder.js'

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
  const [port, secondPort] = await findPorts()
  const state = tempFolder()
  return { folder, port, secondPort, state, socket: path.join(state, 'app.sock'), upstream }
}

/** Both are held at the same time, so that they are two. */
async function findPorts () {
  const servers = [net.createServer(), net.createServer()]
  const ports = await Promise.all(servers.map(async (server) => {
    server.listen(0)
    await once(server, 'listening')
    return /** @type {net.AddressInfo} */ (server.address()).port
  }))
  await Promise.all(servers.map(async (server) => await once(server.close(), 'close')))
  return ports
}
