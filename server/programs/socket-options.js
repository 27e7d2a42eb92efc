import { loadHelperCalls } from './helper-calls.js'

/** @typedef {import('../../workers/protocol.js').BindOptions} BindOptions */

// asm-generic/socket.h, linux/in.h, linux/in6.h, linux/tcp.h, linux/udp.h
const SOL_SOCKET = 1
const IPPROTO_IP = 0
const IPPROTO_IPV6 = 41
const IPPROTO_TCP = 6
const IPPROTO_UDP = 17
const SO_TYPE = 3
const SO_SNDBUF = 7
const SO_RCVBUF = 8
const SO_BINDTODEVICE = 25
const SO_SNDBUFFORCE = 32
const SO_RCVBUFFORCE = 33
const SO_DOMAIN = 39
const SO_NETNS_COOKIE = 71
const SO_BUF_LOCK = 72
const IP_FREEBIND = 15
const IP_TRANSPARENT = 19
const IPV6_TRANSPARENT = 75
const IPV6_FREEBIND = 78
const TCP_MAXSEG = 2
const SEND_IS_FIXED = 1
const RECEIVE_IS_FIXED = 2
const NONE = Buffer.alloc(4)
const BUFFERS = [
  { option: SO_RCVBUF, force: SO_RCVBUFFORCE, lock: RECEIVE_IS_FIXED },
  { option: SO_SNDBUF, force: SO_SNDBUFFORCE, lock: SEND_IS_FIXED }
]
/** @type {[level: number, name: number][]} */
const FREE = [[IPPROTO_IP, IP_FREEBIND], [IPPROTO_IPV6, IPV6_FREEBIND]]
/** @type {[level: number, name: number][]} */
const TRANSPARENT = [[IPPROTO_IP, IP_TRANSPARENT], [IPPROTO_IPV6, IPV6_TRANSPARENT]]

/**
 * What a program can set on a socket and the kernel tells. Left out: what is the master's own (SO_REUSEADDR, SO_REUSEPORT, filters, IPV6_V6ONLY), what
 * reading changes (SO_ERROR), what counts for one connection alone (TCP_REPAIR, TCP_ULP and their like), and buffers, which are set otherwise.
 */
const OPTIONS = [
  { level: SOL_SOCKET, names: [5, 6, 9, 10, 11, 12, 13, 16, 18, 20, 21, SO_BINDTODEVICE, 29, 34, 35, 36, 37, 40, 41, 42, 43, 46, 47, 49, 60, 63, 64, 65, 66, 67, 69, 70, 74, 75, 76, 82, 83] },
  { level: IPPROTO_IP, names: [1, 2, 6, 7, 8, 10, 11, 12, 13, IP_FREEBIND, 18, IP_TRANSPARENT, 20, 21, 22, 23, 24, 25, 26, 32, 33, 34, 49, 50, 51] },
  { level: IPPROTO_IPV6, names: [2, 3, 4, 5, 7, 8, 16, 17, 18, 19, 23, 24, 25, 29, 33, 49, 51, 53, 54, 56, 58, 60, 62, 66, 67, 70, 72, 73, 74, IPV6_TRANSPARENT, 76, 77, IPV6_FREEBIND] },
  { level: IPPROTO_TCP, names: [1, TCP_MAXSEG, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 16, 18, 23, 25, 27, 30, 34, 36, 37, 44, 45, 46, 47] },
  { level: IPPROTO_UDP, names: [1, 100, 101, 102, 103, 104] }
]

/**
 * The options of a program's socket that count for bind(2) itself, or before listen(2).
 * @param {number} fd  a copy of it
 * @returns {BindOptions | null} null: it has set none of them
 */
export function bindOptionsOf (fd) {
  const fresh = freshLike(fd)
  if (fresh < 0) return null
  try {
    const isSet = (/** @type {[number, number][]} */ names) => names.some(([level, name]) => numberOf(fd, level, name) > 0)
    const device = textOf(fd, SOL_SOCKET, SO_BINDTODEVICE)
    const options = {
      ...(device !== '' && { device }),
      ...(isSet(FREE) && { isFree: true }),
      ...(isSet(TRANSPARENT) && { isTransparent: true }),
      ...bufferOf(fd, fresh, { name: 'receiveBytes', option: SO_RCVBUF, lock: RECEIVE_IS_FIXED }),
      ...bufferOf(fd, fresh, { name: 'sendBytes', option: SO_SNDBUF, lock: SEND_IS_FIXED })
    }
    return Object.keys(options).length === 0 ? null : options
  } finally {
    calls().closeCopy(fresh)
  }
}

/** What cannot be set, as it takes rights that the master does not have, is seen by bind(2). @param {number} fd  of a socket that is not bound @param {BindOptions} options */
export function setBindOptions (fd, { device, isFree, isTransparent, receiveBytes, sendBytes }) {
  const set = (/** @type {[number, number][]} */ names) => { for (const [level, name] of names) setNumber(fd, name, 1, level) }
  if (device !== undefined) calls().setOption(fd, SOL_SOCKET, SO_BINDTODEVICE, Buffer.from(device))
  if (isFree) set(FREE)
  if (isTransparent) set(TRANSPARENT)
  if (receiveBytes !== undefined) setBytes(fd, SO_RCVBUFFORCE, SO_RCVBUF, receiveBytes)
  if (sendBytes !== undefined) setBytes(fd, SO_SNDBUFFORCE, SO_SNDBUF, sendBytes)
}

/**
 * Gives a socket the options of a program's, also where it has others from the program that had it before. A socket that others serve as well keeps
 * what these have set: a program may set the same only once it has bound its own.
 * @param {number} from  a copy of the program's @param {number} to @param {{ isShared: boolean }} how
 */
export function keepOptions (from, to, { isShared }) {
  const fresh = freshLike(from)
  if (fresh < 0) return
  for (const { level, names } of OPTIONS) for (const name of names) keepOption({ from, to, fresh, isShared }, level, name)
  for (const buffer of BUFFERS) if (!isShared || numberOf(from, SOL_SOCKET, buffer.option) !== numberOf(fresh, SOL_SOCKET, buffer.option)) setBuffer(from, to, buffer)
  calls().closeCopy(fresh)
}

/** @param {number} fd @returns {string} the network namespace that a socket is in, for comparison; empty where the kernel does not tell: Linux 5.14 */
export function networkOf (fd) {
  return calls().optionOf(fd, SOL_SOCKET, SO_NETNS_COOKIE)?.toString('hex') ?? ''
}

/** @param {{ from: number, to: number, fresh: number, isShared: boolean }} sockets @param {number} level @param {number} name */
function keepOption ({ from, to, fresh, isShared }, level, name) {
  const wanted = calls().optionOf(from, level, name)
  const now = wanted && calls().optionOf(to, level, name)
  if (!wanted || !now || wanted.equals(now)) return
  const isDefault = calls().optionOf(fresh, level, name)?.equals(wanted)
  if (isDefault && isShared) return
  // This one says what a connection would get, and would be fixed to that.
  const isFixedBySetting = level === IPPROTO_TCP && name === TCP_MAXSEG
  calls().setOption(to, level, name, isDefault && isFixedBySetting ? NONE : wanted)
}

/** @param {number} fd @param {number} fresh @param {{ name: string, option: number, lock: number }} buffer @returns {Record<string, number>} as it was set: the kernel doubles it */
function bufferOf (fd, fresh, { name, option, lock }) {
  const bytes = numberOf(fd, SOL_SOCKET, option)
  return isFixed(fd, lock) ?? bytes !== numberOf(fresh, SOL_SOCKET, option) ? { [name]: bytes / 2 } : {}
}

/** @param {number} from @param {number} to @param {{ option: number, force: number, lock: number }} buffer */
function setBuffer (from, to, { option, force, lock }) {
  const bytes = numberOf(from, SOL_SOCKET, option)
  if (bytes === numberOf(to, SOL_SOCKET, option)) return
  setBytes(to, force, option, bytes / 2)
  // One that nobody has set grows by itself.
  if (isFixed(from, lock) === false) setNumber(to, SO_BUF_LOCK, numberOf(to, SOL_SOCKET, SO_BUF_LOCK) & ~lock)
}

/** Root may have more than net.core.rmem_max. @param {number} fd @param {number} force @param {number} option @param {number} bytes */
function setBytes (fd, force, option, bytes) {
  if (!setNumber(fd, force, bytes)) setNumber(fd, option, bytes)
}

/** @param {number} fd @param {number} lock @returns {boolean | null} null: the kernel does not tell, as before Linux 5.17 */
function isFixed (fd, lock) {
  const locks = calls().optionOf(fd, SOL_SOCKET, SO_BUF_LOCK)
  return locks && (locks.readInt32LE() & lock) !== 0
}

/** @param {number} fd @returns {number} a socket of the same kind; below 0: there is none to be had */
export function freshLike (fd) {
  return calls().freshSocket({ domain: numberOf(fd, SOL_SOCKET, SO_DOMAIN), type: numberOf(fd, SOL_SOCKET, SO_TYPE) })
}

/** @param {number} fd @param {number} level @param {number} name @returns {number} 0: it has no such option */
function numberOf (fd, level, name) {
  const value = calls().optionOf(fd, level, name)
  return value && value.length >= 4 ? value.readInt32LE() : 0
}

/** @param {number} fd @param {number} level @param {number} name @returns {string} */
function textOf (fd, level, name) {
  return calls().optionOf(fd, level, name)?.toString('utf8').replace(/\0.*$/s, '') ?? ''
}

/** @param {number} fd @param {number} option @param {number} value @param {number} [level] @returns {boolean} */
function setNumber (fd, option, value, level = SOL_SOCKET) {
  return calls().setOption(fd, level, option, Buffer.from(Int32Array.of(value).buffer))
}

function calls () {
  return /** @type {import('./helper-calls.js').HelperCalls} */ (loadHelperCalls())
}
