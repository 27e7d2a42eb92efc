import { open } from 'node:fs/promises'

const TABLES = ['/proc/net/tcp', '/proc/net/tcp6']
/** Local address and port, none remote, state, queues, timers and retries, user id, timeout, inode. */
const LISTENER = /^ *\d+: [\dA-F]+:([\dA-F]{4}) [\dA-F]+:0000 0A \S+ \S+ \S+ +(\d+) +\d+ (\d+) /
/** One that no process has any more is shown as root's, with the inode 0. */
const ORPHANED = '0'
const NOBODY = -1
const HEADING = /^ *sl /

/**
 * Which users of this machine listen on a port, on whatever address, see proc_net_tcp(5).
 * @param {number} port
 * @param {readonly string[]} [tables]
 * @returns {Promise<number[] | null>} user ids, -1 among them for a listener without an owner; null: the system does not tell
 */
export async function ownersOfListeners (port, tables = TABLES) {
  const listeners = (await Promise.all(tables.map(readListeners))).filter((rows) => rows !== null)
  if (listeners.length === 0) return null
  return [...new Set(listeners.flat().filter((listener) => listener.port === port).map(({ uid }) => uid))]
}

/**
 * They come first: of a machine with many connections not all of the table is read.
 * @param {string} table @returns {Promise<{ port: number, uid: number }[] | null>}
 */
async function readListeners (table) {
  /** @type {{ port: number, uid: number }[]} */
  const found = []
  try {
    const file = await open(table)
    for await (const line of file.readLines()) {
      const [, port, uid, inode] = LISTENER.exec(line) ?? []
      if (port !== undefined) found.push({ port: Number.parseInt(port, 16), uid: inode === ORPHANED ? NOBODY : Number(uid) })
      else if (!HEADING.test(line)) break
    }
    return found
  } catch {
    // ENOENT: another system, or one without IPv6.
    return null
  }
}
