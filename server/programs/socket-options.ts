import { loadHelperCalls, type HelperCalls } from './helper-calls.ts'
import { SOL_SOCKET, IPPROTO_TCP, IPPROTO_IPV6 } from '../system/socket-numbers.ts'
import type { BindOptions } from '../../workers/protocol.ts'

// asm-generic/socket.h, linux/in.h, linux/in6.h, linux/tcp.h, linux/udp.h
const IPPROTO_IP = 0
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
const BUFFERS = [{ option: SO_RCVBUF, force: SO_RCVBUFFORCE, lock: RECEIVE_IS_FIXED }, { option: SO_SNDBUF,
  force: SO_SNDBUFFORCE, lock: SEND_IS_FIXED }]
const FREE: [level: number, name: number][] = [[IPPROTO_IP, IP_FREEBIND], [IPPROTO_IPV6, IPV6_FREEBIND]]
const TRANSPARENT: [level: number, name: number][] = [[IPPROTO_IP, IP_TRANSPARENT], [IPPROTO_IPV6, IPV6_TRANSPARENT]]

/**
 * What a program can set on a socket and the kernel tells. Left out: what is the master's own (SO_REUSEADDR,
 * SO_REUSEPORT, filters, IPV6_V6ONLY), what reading changes (SO_ERROR), what counts for one connection alone
 * (TCP_REPAIR, TCP_ULP and their like), and buffers, which are set otherwise.
 */
const OPTIONS = [{ level: SOL_SOCKET,
  names: [5, 6, 9, 10, 11, 12, 13, 16, 18, 20, 21, SO_BINDTODEVICE, 29, 34, 35, 36, 37, 40, 41, 42, 43, 46, 47, 49, 60,
    63, 64, 65, 66, 67, 69, 70, 74, 75, 76, 82, 83] }, { level: IPPROTO_IP,
  names: [1, 2, 6, 7, 8, 10, 11, 12, 13, IP_FREEBIND, 18, IP_TRANSPARENT, 20, 21, 22, 23, 24, 25, 26, 32, 33, 34, 49,
    50, 51] }, { level: IPPROTO_IPV6,
  names: [2, 3, 4, 5, 7, 8, 16, 17, 18, 19, 23, 24, 25, 29, 33, 49, 51, 53, 54, 56, 58, 60, 62, 66, 67, 70, 72, 73, 74,
    IPV6_TRANSPARENT, 76, 77, IPV6_FREEBIND] }, { level: IPPROTO_TCP,
  names: [1, TCP_MAXSEG, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 16, 18, 23, 25, 27, 30, 34, 36, 37, 44, 45, 46, 47] }, {
  level: IPPROTO_UDP,
  names: [1, 100, 101, 102, 103, 104]
}]

/**
 * The options of a program's socket that count for bind(2) itself, or before listen(2). `fd`: a copy of it. Returns
 * null: it has set none of them.
 */
export function bindOptionsOf (fd: number): BindOptions | null {
  const fresh = freshLike(fd)
  if (fresh < 0) return null
  try {
    const isSet = (names: [number, number][]) => names.some(([level, name]) => numberOf(fd, level, name) > 0)
    const device = textOf(fd, SOL_SOCKET, SO_BINDTODEVICE)
    const options = { ...(device !== '' && { device }), ...(isSet(FREE) && { isFree: true }),
      ...(isSet(TRANSPARENT) && { isTransparent: true }),
      ...bufferOf(fd, fresh, { name: 'receiveBytes', option: SO_RCVBUF, lock: RECEIVE_IS_FIXED }),
      ...bufferOf(fd, fresh, { name: 'sendBytes', option: SO_SNDBUF, lock: SEND_IS_FIXED }) }
    return Object.keys(options).length === 0 ? null : options
  } finally {
    calls().closeCopy(fresh)
  }
}

/**
 * What cannot be set, as it takes rights that the master does not have, is seen by bind(2).
 * @param fd of a socket that is not bound
 */
export function setBindOptions (fd: number, { device, isFree, isTransparent, receiveBytes, sendBytes }: BindOptions) {
  const set = (names: [number, number][]) => {
    for (const [level, name] of names) setNumber(fd, name, 1, level)
  }
  if (device !== undefined) calls().setOption(fd, SOL_SOCKET, SO_BINDTODEVICE, Buffer.from(device))
  if (isFree) set(FREE)
  if (isTransparent) set(TRANSPARENT)
  if (receiveBytes !== undefined) setBytes(fd, SO_RCVBUFFORCE, SO_RCVBUF, receiveBytes)
  if (sendBytes !== undefined) setBytes(fd, SO_SNDBUFFORCE, SO_SNDBUF, sendBytes)
}

/**
 * Gives a socket the options of a program's, also where it has others from the program that had it before. A socket
 * that others serve as well keeps what these have set: a program may set the same only once it has bound its own.
 * @param from a copy of the program's
 */
export function keepOptions (from: number, to: number, { isShared }: { isShared: boolean }) {
  const fresh = freshLike(from)
  if (fresh < 0) return
  for (const { level, names } of OPTIONS)
    for (const name of names) keepOption({ from, to, fresh, isShared }, level, name)
  for (const buffer of BUFFERS)
    if (!isShared || numberOf(from, SOL_SOCKET, buffer.option) !== numberOf(fresh, SOL_SOCKET, buffer.option))
      setBuffer(from, to, buffer)
  calls().closeCopy(fresh)
}

/**
 * @returns the network namespace that a socket is in, for comparison; empty where the kernel does not tell: Linux 5.14
 */
export function networkOf (fd: number): string {
  return calls().optionOf(fd, SOL_SOCKET, SO_NETNS_COOKIE)?.toString('hex') ?? ''
}

function keepOption ({ from, to, fresh, isShared }: { from: number, to: number, fresh: number, isShared: boolean },
  level: number, name: number)
{
  const wanted = calls().optionOf(from, level, name)
  const now = wanted && calls().optionOf(to, level, name)
  if (!wanted || !now || wanted.equals(now)) return
  const isDefault = calls().optionOf(fresh, level, name)?.equals(wanted)
  if (isDefault && isShared) return
  // This one says what a connection would get, and would be fixed to that.
  const isFixedBySetting = level === IPPROTO_TCP && name === TCP_MAXSEG
  calls().setOption(to, level, name, isDefault && isFixedBySetting ? NONE : wanted)
}

/** @returns as it was set: the kernel doubles it */
function bufferOf (fd: number, fresh: number,
  { name, option, lock }: { name: string, option: number, lock: number }): Record<string, number>
{
  const bytes = numberOf(fd, SOL_SOCKET, option)
  return isFixed(fd, lock) ?? bytes !== numberOf(fresh, SOL_SOCKET, option) ? { [name]: bytes / 2 } : {}
}

function setBuffer (from: number, to: number,
  { option, force, lock }: { option: number, force: number, lock: number })
{
  const bytes = numberOf(from, SOL_SOCKET, option)
  if (bytes === numberOf(to, SOL_SOCKET, option)) return
  setBytes(to, force, option, bytes / 2)
  // One that nobody has set grows by itself.
  if (isFixed(from, lock) === false) setNumber(to, SO_BUF_LOCK, numberOf(to, SOL_SOCKET, SO_BUF_LOCK) & ~lock)
}

/** Root may have more than net.core.rmem_max. */
function setBytes (fd: number, force: number, option: number, bytes: number) {
  if (!setNumber(fd, force, bytes)) setNumber(fd, option, bytes)
}

/** Null: the kernel does not tell, as before Linux 5.17 */
function isFixed (fd: number, lock: number): boolean | null {
  const locks = calls().optionOf(fd, SOL_SOCKET, SO_BUF_LOCK)
  return locks && (locks.readInt32LE() & lock) !== 0
}

/** @returns a socket of the same kind; below 0: there is none to be had */
export function freshLike (fd: number): number {
  return calls().freshSocket({ domain: numberOf(fd, SOL_SOCKET, SO_DOMAIN), type: numberOf(fd, SOL_SOCKET, SO_TYPE) })
}

/** @returns 0: it has no such option */
function numberOf (fd: number, level: number, name: number): number {
  const value = calls().optionOf(fd, level, name)
  return value && value.length >= 4 ? value.readInt32LE() : 0
}

function textOf (fd: number, level: number, name: number): string {
  return calls().optionOf(fd, level, name)?.toString('utf8').replace(/\0.*$/s, '') ?? ''
}

function setNumber (fd: number, option: number, value: number, level: number = SOL_SOCKET): boolean {
  return calls().setOption(fd, level, option, Buffer.from(Int32Array.of(value).buffer))
}

function calls () {
  return loadHelperCalls() as HelperCalls
}
