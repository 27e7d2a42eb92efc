import { endianness } from 'node:os'
import path from 'node:path'
import { linkAt, textIn } from '../system/proc.js'
import { addressOf, textOfV6 } from './socket-request.js'

/** TCP_LISTEN, and the flag of a Unix socket that accepts connections: proc_pid_net(5). */
const LISTENING = '0A'
const ESTABLISHED = '01'
const ACCEPTS = 0x10000

/** @typedef {{ inode: number, host: string, port: number, path?: undefined }} TcpListener */
/** @typedef {TcpListener | { inode: number, host?: undefined, port?: undefined, path: string }} Listener  `path`: as the process gave it that has bound it */

/**
 * What processes listen on in the network namespace of one of them.
 * @param {number} pid @param {ReadonlySet<number>} inodes  of the sockets that count
 * @returns {Map<number, string>} URLs by the inode; of TCP and Unix sockets
 */
export function listeningSockets (pid, inodes) {
  return new Map(listenersOf(pid).filter(({ inode }) => inodes.has(inode)).map((each) => [each.inode, urlOf(each)]))
}

/** @param {number | 'self'} pid @returns {Listener[]} all TCP and Unix sockets of its network namespace that accept connections */
export function listenersOf (pid) {
  const tcp = [...rowsOf(pid, 'tcp'), ...rowsOf(pid, 'tcp6')].filter(({ 3: state }) => state === LISTENING)
  return [...tcp.map((fields) => ({ inode: Number(fields[9]), ...placeIn(fields) })), ...rowsOf(pid, 'unix').flatMap(readUnix)]
}

/**
 * @param {number} pid @param {ReadonlySet<number>} inodes  of the sockets that count @param {ReadonlySet<number>} ports
 * @returns {number} how many of them are connections to these ports of this machine
 */
export function countConnections (pid, inodes, ports) {
  const rows = [...rowsOf(pid, 'tcp'), ...rowsOf(pid, 'tcp6')]
  return rows.filter((fields) => fields[3] === ESTABLISHED && inodes.has(Number(fields[9])) && ports.has(placeIn(fields).port)).length
}

/** @param {Listener} listener @returns {string} */
function urlOf ({ host, port, path: address }) {
  return addressOf(address === undefined ? { address: host, port, addressType: 4 } : { address, port: -1, addressType: -1 })
}

/** @param {string[]} fields */
function placeIn ([, local]) {
  const [address, port] = local.split(':')
  return { host: textOf(address), port: Number.parseInt(port, 16) }
}

/** @param {string[]} fields @returns {Listener[]} */
function readUnix ([, , , flags, , , inode, address = '']) {
  return (Number.parseInt(flags, 16) & ACCEPTS) === 0 || address === '' ? [] : [{ inode: Number(inode), path: address }]
}

/** @param {number} pid @param {string} file  as the process has bound it @returns {string} absolute; of the abstract namespace as it is */
export function absolutePath (pid, file) {
  return file.startsWith('@') ? file : path.resolve(linkAt(`/proc/${pid}/cwd`) || '/', file)
}

/** @param {string} hex  words as the machine has them @returns {string} */
function textOf (hex) {
  const bytes = Buffer.from(hex, 'hex')
  if (endianness() === 'LE') bytes.swap32()
  if (bytes.length === 4) return bytes.join('.')
  return textOfV6(bytes)
}

/** @param {number | 'self'} pid @param {string} table @returns {string[][]} the fields of each row */
function rowsOf (pid, table) {
  return textIn(`/proc/${pid}/net/${table}`).split('\n').slice(1).filter(Boolean).map((row) => row.trim().split(/\s+/))
}
