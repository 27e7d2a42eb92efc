import { readFileSync } from 'node:fs'
import { endianness } from 'node:os'

const TABLES = ['/proc/net/tcp', '/proc/net/tcp6']

/** @type {WeakMap<import('node:net').Socket, number | null>} */
const known = new WeakMap()

/**
 * Which user of this machine has the other end of a connection. Read from the kernel's tables once, see proc_net_tcp(5).
 * @param {import('node:net').Socket} socket
 * @returns {number | null} a user id; null: it comes from another machine, or the system does not tell
 */
export function ownerOf (socket) {
  const owner = known.get(socket)
  if (owner !== undefined) return owner
  const found = isOfThisMachine(socket) ? findOwner(socket) : null
  known.set(socket, found)
  return found
}

/** @param {import('node:net').Socket} socket */
function isOfThisMachine ({ remoteAddress = '', localAddress }) {
  return remoteAddress === localAddress || /^(::1|(::ffff:)?127\.\d+\.\d+\.\d+)$/.test(remoteAddress)
}

/** @param {import('node:net').Socket} socket @returns {number | null} */
function findOwner ({ remoteAddress, remotePort, localAddress, localPort }) {
  // What is remote to us is local to them. State 06, TIME_WAIT, has no owner any more.
  const row = new RegExp(`^ *\\d+: ${place(remoteAddress, remotePort)} ${place(localAddress, localPort)} (?!06)\\S+ \\S+ \\S+ \\S+ +(\\d+) `, 'm')
  for (const table of TABLES) {
    const uid = row.exec(readTable(table))?.[1]
    if (uid !== undefined) return Number(uid)
  }
  return null
}

/** @param {string} [address] @param {number} [port] @returns {string} a pattern: an IPv4 address is in both tables, in the second one as mapped into IPv6 */
function place (address = '', port = 0) {
  const isV4 = address.includes('.')
  const words = isV4 ? [v4Word(address)] : v6Words(address)
  return `${isV4 ? '(?:0{16}FFFF0000)?' : ''}${words.map((word) => hex(word, 8)).join('')}:${hex(port, 4)}`
}

/** @param {string} address */
function v4Word (address) {
  return asPrinted(Buffer.from(address.replace('::ffff:', '').split('.').map(Number)))
}

/** @param {string} address as Node writes it: lower case, and one `::` at most */
function v6Words (address) {
  const [head, tail] = address.split('%')[0].split('::').map((part) => part.split(':').filter(Boolean))
  const groups = tail ? [...head, ...Array(8 - head.length - tail.length).fill('0'), ...tail] : head
  const bytes = Buffer.from(groups.map((group) => group.padStart(4, '0')).join(''), 'hex')
  return [0, 4, 8, 12].map((at) => asPrinted(bytes.subarray(at, at + 4)))
}

/** The kernel prints the four bytes as a number of the machine. @param {Buffer} bytes */
function asPrinted (bytes) {
  return endianness() === 'LE' ? bytes.readUInt32LE() : bytes.readUInt32BE()
}

/** @param {string} file */
function readTable (file) {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    // ENOENT: another system, or one without IPv6.
    return ''
  }
}

/** @param {number} number @param {number} digits */
function hex (number, digits) {
  return number.toString(16).toUpperCase().padStart(digits, '0')
}
