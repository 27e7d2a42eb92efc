import { closeSync, openSync, readFileSync, readSync } from 'node:fs'
import { isIPv4 } from 'node:net'
import path from 'node:path'

/** @typedef {import('../../workers/protocol.js').SocketQuery} SocketQuery */
/** @typedef {{ domain: number, type: number, isV6Only: boolean }} SocketKind */

// sys/socket.h
const AF_UNIX = 1
const AF_INET = 2
const AF_INET6 = 10
const SOCK_STREAM = 1
const SOCK_DGRAM = 2
/** The longest address of any family: struct sockaddr_storage. */
const MAX_ADDRESS_BYTES = 128
/** UV_TCP_IPV6ONLY, as Node asks for it. */
const V6_ONLY = 1
const O_CLOEXEC = 0o2000000

/**
 * What another process hands to bind(2).
 * @param {number} pid of the thread that waits @param {bigint} address @param {bigint} length
 * @returns {Buffer} empty where it cannot be read
 */
export function readAddress (pid, address, length) {
  const name = Buffer.alloc(Math.min(Number(length & 0xffffffffn), MAX_ADDRESS_BYTES))
  try {
    const memory = openSync(`/proc/${pid}/mem`, 'r')
    try {
      return name.subarray(0, readSync(memory, name, 0, name.length, address))
    } finally {
      closeSync(memory)
    }
  } catch {
    // It has ended, or may not be looked into.
    return Buffer.alloc(0)
  }
}

/** @param {number} thread @returns {number} the process that it is of */
export function processOf (thread) {
  return Number(/^Tgid:\s*(\d+)$/m.exec(readOr(`/proc/${thread}/status`))?.[1] ?? thread)
}

/** @param {number} pid @param {number} fd @returns {boolean} whether what it executes does not get this descriptor */
export function isClosedOnExec (pid, fd) {
  return (Number.parseInt(/^flags:\s*(\d+)$/m.exec(readOr(`/proc/${pid}/fdinfo/${fd}`))?.[1] ?? '0', 8) & O_CLOEXEC) !== 0
}

/**
 * @param {Buffer} name  a sockaddr @param {SocketKind} kind  of the socket that is to have it @param {() => string} folder  that paths start from
 * @returns {SocketQuery | null} null: nothing that the copies of a program could share, such as any free port
 */
export function socketQuery (name, kind, folder) {
  const place = readPlace(name)
  if (place === null) return null
  if ('path' in place) return kind.type === SOCK_STREAM && kind.domain === AF_UNIX ? { address: path.resolve(folder(), place.path), port: -1, addressType: -1, index: 0 } : null
  if (place.port === 0 || (kind.type !== SOCK_STREAM && kind.type !== SOCK_DGRAM)) return null
  const version = kind.domain === AF_INET6 ? 6 : 4
  return {
    address: place.address,
    port: place.port,
    addressType: kind.type === SOCK_DGRAM ? `udp${version}` : version,
    flags: version === 6 && kind.isV6Only ? V6_ONLY : 0,
    index: 0
  }
}

/** @param {Buffer} name a sockaddr @param {SocketKind} kind @returns {string | null} as a URL; null: a socket of another family */
export function addressOf (name, { type }) {
  const place = readPlace(name)
  if (place === null) return null
  if ('path' in place) return `unix:${place.path}`
  const host = ['0.0.0.0', '::'].includes(place.address) ? 'localhost' : isIPv4(place.address) ? place.address : `[${place.address}]`
  return `${type === SOCK_DGRAM ? 'udp' : 'tcp'}://${host}:${place.port}`
}

/**
 * @param {Buffer} name
 * @returns {{ address: string, port: number } | { path: string } | null} null: of another family, or a name without a file
 */
function readPlace (name) {
  const family = name.length >= 2 ? name.readUInt16LE(0) : -1
  if (family === AF_INET && name.length >= 8) return { address: [...name.subarray(4, 8)].join('.'), port: name.readUInt16BE(2) }
  if (family === AF_INET6 && name.length >= 24) return { address: textOfV6(name.subarray(8, 24)), port: name.readUInt16BE(2) }
  if (family !== AF_UNIX || name.length < 4 || name[2] === 0) return null
  const end = name.indexOf(0, 2)
  return { path: name.toString('utf8', 2, end === -1 ? name.length : end) }
}

/** @param {Buffer} bytes @returns {string} as RFC 5952 has it */
function textOfV6 (bytes) {
  const groups = Array.from({ length: 8 }, (_, index) => bytes.readUInt16BE(2 * index).toString(16))
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1)
}

/** @param {string} file @returns {string} */
function readOr (file) {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    // It has ended.
    return ''
  }
}
