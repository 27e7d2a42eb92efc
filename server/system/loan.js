import { mkdtempSync, rmSync } from 'node:fs'
import net from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'

/** sun_path of unix(7), without its last byte. */
const LONGEST_PATH_BYTES = 107
const TAKEN_WITHIN_MS = 10_000
const SOCKET = 'socket'

/** @typedef {Awaited<ReturnType<typeof lend>>} Loan */

/**
 * Makes a folder for sockets that no other user can enter.
 * @param {string} below  if the paths of the sockets do not get too long there
 * @param {string} prefix @param {string} longestName  of a socket
 */
export function makeSocketFolder (below, prefix, longestName) {
  const isShort = Buffer.byteLength(path.join(below, `${prefix}XXXXXX`, longestName)) <= LONGEST_PATH_BYTES
  return mkdtempSync(path.join(isShort ? below : tmpdir(), prefix))
}

/**
 * Gives a text once, within a few seconds, to a process of this user on this machine, and so to nobody by the network.
 * @param {string} content @param {{ below: string, takenWithinMs?: number }} how  `below`: a folder of ours
 * @returns {Promise<{ path: string, over: Promise<void>, close: () => void }>} `path`: for take()
 */
export async function lend (content, { below, takenWithinMs = TAKEN_WITHIN_MS }) {
  const folder = makeSocketFolder(below, 'lend-', SOCKET)
  const file = path.join(folder, SOCKET)
  const server = net.createServer((connection) => {
    // ECONNRESET, EPIPE: whoever has come is gone again.
    connection.on('error', () => {})
    connection.end(content)
    close()
  })
  const timer = setTimeout(close, takenWithinMs).unref()
  const over = new Promise((resolve) => { server.once('close', () => resolve(undefined)) })
  await new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(file, () => resolve(undefined))
  }).catch((error) => {
    close()
    throw error
  })
  return { path: file, over, close }

  function close () {
    clearTimeout(timer)
    server.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** @param {string} file  of lend() @returns {Promise<string>} @throws ENOENT, ECONNREFUSED: it has been taken, or the time is up */
export async function take (file) {
  return await text(net.connect(file))
}
