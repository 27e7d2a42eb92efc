import { readFileSync } from 'node:fs'
import { endianness, networkInterfaces } from 'node:os'
import { attempt } from '../errors.ts'
import type { Socket } from 'node:net'

const TABLE = '/proc/net/tcp'
const TABLE_OF_IPV6 = '/proc/net/tcp6'
const ROW = /^ *\d+: /m
const NO_INODE = '0'
const LOOPBACK = /^(::1|(::ffff:)?127\.\d+\.\d+\.\d+)$/
/** ESTABLISHED and SYN_RECV. */
const WAITING = ['01', '03']

/**
 * Whoever had the other end of a connection has closed it before anybody asked: no user id, and not to be taken for
 * anyone.
 */
export const NOBODY = -1

const known: WeakMap<Socket, number | null> = new WeakMap()
/**
 * Connections whose owner nobody has asked for yet. The kernel takes milliseconds to write a table, so one reading of
 * it serves all of them: a browser opens several at once.
 */
const expected: Set<Socket> = new Set()

/**
 * Has the owner of this connection looked up too when the tables are read for another one.
 * @param socket that has just been accepted
 */
export function expectOwner (socket: Socket) {
  expected.add(socket)
  socket.once('close', () => expected.delete(socket))
}

/**
 * Which user of this machine has the other end of a connection. Read from the kernel's tables once, see
 * proc_net_tcp(5).
 * @returns a user id, or NOBODY; null: it comes from another machine, or the system does not tell
 */
export function ownerOf (socket: Socket): number | null {
  const owner = known.get(socket)
  if (owner !== undefined) return owner
  const tables = createTables()
  const found = findOwner(socket, tables)
  noteOwner(socket, found)
  for (const other of expected) {
    const held = isOfThisMachine(other, tables) ? rowsOf(tables.alreadyRead(), other).find(isHeld) : undefined
    if (held) noteOwner(other, held.uid)
  }
  return found
}

function noteOwner (socket: Socket, owner: number | null) {
  known.set(socket, owner)
  expected.delete(socket)
}

/** A process may send from any address of its machine, whichever one it connects to. */
function isOfThisMachine ({ remoteAddress = '', localAddress }: Socket, tables: Tables) {
  return remoteAddress === localAddress || LOOPBACK.test(remoteAddress) ||
    tables.ownAddresses().includes(plainAddress(remoteAddress))
}

/** Without the prefix of an IPv4 address mapped into IPv6, and without the name of an interface. */
export function plainAddress (address: string) {
  return address.replace(/^::ffff:/, '').replace(/%.*$/, '')
}

function findOwner (socket: Socket, tables: Tables): number | null {
  // It was reset before it was accepted: where it came from is not known any more.
  if (socket.remoteAddress === undefined) return NOBODY
  const found = otherEndOf(socket, tables)
  if (typeof found === 'number') return found
  return found === 'elsewhere' || found === 'untold' ? null : NOBODY
}

/**
 * Who has the other end of a connection at this moment. `socket`: connected. Returns a user id; `not taken`: it waits
 * for whoever listens to accept it; `gone`: nobody has it any more; `untold`: the system does not tell; `elsewhere`:
 * another machine.
 */
export function otherEndOf (socket: Socket, tables: Tables = createTables()): number | 'not taken' | 'gone' | 'untold'
  | 'elsewhere'
{
  if (!isOfThisMachine(socket, tables)) return 'elsewhere'
  const seen = []
  for (const file of isV4(socket.remoteAddress) ? [TABLE, TABLE_OF_IPV6] : [TABLE_OF_IPV6]) {
    const table = tables.read(file)
    seen.push(table)
    const rows = rowsOf([table], socket)
    const held = rows.find(isHeld)
    if (held) return held.uid
    // It is in one table only, and stays there.
    if (rows.some(({ state }) => WAITING.includes(state))) return 'not taken'
  }
  // At least our own end is in them, where they tell anything.
  return seen.some((table) => ROW.test(table)) ? 'gone' : 'untold'
}

/** One that no process has is shown as root's. */
function isHeld ({ inode }: { inode: string }) {
  return inode !== NO_INODE
}

function rowsOf (tables: string[], { remoteAddress, remotePort, localAddress, localPort }: Socket) {
  // One that has been closed may still know where it came from, and no more where it was.
  if (!remoteAddress || !localAddress) return []
  // What is remote to us is local to them.
  const row = new RegExp(
    `^ *\\d+: ${placePattern(remoteAddress, remotePort)} ${
      placePattern(localAddress, localPort)
    } (\\S+) \\S+ \\S+ \\S+ +(\\d+) +\\d+ (\\d+) `,
    'gm'
  )
  return tables.flatMap((table) => [...table.matchAll(row)]).map(([, state, uid, inode]) => ({ state, uid: Number(uid),
    inode })
  )
}

/** What is said of IPv4 is in both tables, in the second one where whoever asks has a socket of IPv6. */
function isV4 (address: string = '') {
  return address.includes('.')
}

/** @returns a pattern: an IPv4 address is in both tables, in the second one as mapped into IPv6 */
function placePattern (address: string = '', port: number = 0): string {
  const words = isV4(address) ? [v4Word(address)] : v6Words(address)
  return `${isV4(address) ? '(?:0{16}FFFF0000)?' : ''}${words.map((word) => toHex(word, 8)).join('')}:${toHex(port, 4)}`
}

function v4Word (address: string) {
  return asPrinted(Buffer.from(address.replace('::ffff:', '').split('.').map(Number)))
}

/** `address`: as Node writes it: lower case, and one `::` at most */
function v6Words (address: string) {
  const [head, tail] = address.split('%')[0].split('::').map((part) => part.split(':').filter(Boolean))
  const groups = tail ? [...head, ...Array(8 - head.length - tail.length).fill('0'), ...tail] : head
  const bytes = Buffer.from(groups.map((group) => group.padStart(4, '0')).join(''), 'hex')
  return [0, 4, 8, 12].map((at) => asPrinted(bytes.subarray(at, at + 4)))
}

/** The kernel prints the four bytes as a number of the machine. */
function asPrinted (bytes: Buffer) {
  return endianness() === 'LE' ? bytes.readUInt32LE() : bytes.readUInt32BE()
}

type Tables = ReturnType<typeof createTables>

/**
 * What the kernel says at one moment: each table, and the addresses of this machine, are read once, when they are
 * needed.
 */
function createTables () {
  const texts: Map<string, string> = new Map()
  let addresses: string[] | null = null
  return { ownAddresses () {
    // ERR_SYSTEM_ERROR: a system that does not tell them.
    addresses ??= Object.values(attempt(networkInterfaces, {})).flatMap((each) => each ?? []).map(({ address }) =>
      plainAddress(address)
    )
    return addresses
  }, alreadyRead: () => [...texts.values()], read (file: string) {
    // ENOENT: another system, or one without IPv6.
    const text = texts.get(file) ?? attempt(() => readFileSync(file, 'latin1'), '')
    texts.set(file, text)
    return text
  } }
}

function toHex (number: number, digits: number) {
  return number.toString(16).toUpperCase().padStart(digits, '0')
}
