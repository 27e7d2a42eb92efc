import { endianness } from 'node:os'
import { textIn } from '../system/proc.js'
import { addressOf, textOfV6 } from './socket-request.js'

/** TCP_LISTEN, and the flag of a Unix socket that accepts connections: proc_pid_net(5). */
const LISTENING = '0A'
const ACCEPTS = 0x10000

/**
 * What processes listen on in the network namespace of one of them.
 * @param {number} pid @param {ReadonlySet<number>} inodes  of the sockets that count
 * @returns {Map<number, string>} URLs by the inode; of TCP and Unix sockets
 */
export function listeningSockets (pid, inodes) {
  const found = [...rowsOf(pid, 'tcp').map(readTcp), ...rowsOf(pid, 'tcp6').map(readTcp), ...rowsOf(pid, 'unix').map(readUnix)]
  return new Map(found.flatMap((each) => each && inodes.has(each.inode) ? [[each.inode, each.url]] : []))
}

/** @param {string[]} fields */
function readTcp ([, local, , state, , , , , , inode]) {
  if (state !== LISTENING) return null
  const [address, port] = local.split(':')
  return { inode: Number(inode), url: addressOf({ address: textOf(address), port: Number.parseInt(port, 16), addressType: 4 }) }
}

/** @param {string[]} fields */
function readUnix ([, , , flags, , , inode, address = '']) {
  return (Number.parseInt(flags, 16) & ACCEPTS) === 0 || address === '' ? null : { inode: Number(inode), url: addressOf({ address, port: -1, addressType: -1 }) }
}

/** @param {string} hex  words as the machine has them @returns {string} */
function textOf (hex) {
  const bytes = Buffer.from(hex, 'hex')
  if (endianness() === 'LE') bytes.swap32()
  if (bytes.length === 4) return bytes.join('.')
  return textOfV6(bytes)
}

/** @param {number} pid @param {string} table @returns {string[][]} the fields of each row */
function rowsOf (pid, table) {
  return textIn(`/proc/${pid}/net/${table}`).split('\n').slice(1).filter(Boolean).map((row) => row.trim().split(/\s+/))
}
