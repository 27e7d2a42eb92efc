import { closeSync, openSync, readSync } from 'node:fs'
import { isIPv4 } from 'node:net'
import path from 'node:path'
import { attempt } from '../errors.ts'
import { isUdp, type SocketQuery } from '../../workers/protocol.ts'
import { socketAt, textIn } from '../system/proc.ts'
import { loadHelperCalls } from './helper-calls.ts'
import { AF_UNIX, AF_INET, AF_INET6, O_NONBLOCK, O_CLOEXEC, MAX_ADDRESS_BYTES } from '../system/socket-numbers.ts'
import type { SystemCalls } from './system-calls.ts'

const USUAL_PATH_BYTES = 256
const PAGE_BYTES = 4096
/** PATH_MAX. */
const MAX_PATH_BYTES = 4096
/** UV_TCP_IPV6ONLY and UV_UDP_IPV6ONLY, as Node asks for it. */
const V6_ONLY = 1
/** What sockets of these protocols are called in a query. */
const TYPES: Readonly<Record<string, number | string>> = Object.freeze({ TCP: 4, TCPv6: 6, MPTCP: 4, MPTCPv6: 6,
  UDP: 'udp4', UDPv6: 'udp6' })
/** Older kernels call all Unix sockets the same. */
const UNIX_STREAMS = ['UNIX-STREAM', 'UNIX']

const HTTPS_PORTS = new Set([443, 8443])
/**
 * Of FTP, SSH, Telnet, SMTP, DNS, POP, IMAP, LDAP, MQTT, MySQL, PostgreSQL, AMQP, NATS, Redis, Kafka, memcached,
 * MongoDB.
 */
const OTHER_PORTS = new Set([21, 22, 23, 25, 53, 110, 143, 389, 465, 587, 636, 993, 995, 1883, 3306, 4222, 5432, 5672,
  6379, 6380, 8883, 9092, 11_211, 27_017])

/** What another process hands to bind(2). `thread`: that waits. @returns empty where it cannot be read */
export function readAddress (thread: number, address: bigint, length: bigint): Buffer {
  return readMemory(thread, address, Math.min(Number(length & 0xffffffffn), MAX_ADDRESS_BYTES))
}

/** `thread`: that waits; `address`: of a text that ends with a NUL @returns empty where it cannot be read */
export function readText (thread: number, address: bigint): string {
  // It may end with the last page that there is.
  const short = readMemory(thread, address,
    Math.min(USUAL_PATH_BYTES, PAGE_BYTES - Number(address % BigInt(PAGE_BYTES))))
  const bytes = short.includes(0) ? short : readMemory(thread, address, MAX_PATH_BYTES)
  return bytes.toString('utf8', 0, Math.max(0, bytes.indexOf(0)))
}

/** @returns as much as can be read */
function readMemory (thread: number, address: bigint, count: number): Buffer {
  const read = loadHelperCalls()?.memoryOf(thread, address, count)
  if (read) return read
  const bytes = Buffer.allocUnsafe(count)
  // It may have ended, or may not be looked into.
  return attempt(() => {
    const memory = openSync(`/proc/${thread}/mem`, 'r')
    try {
      return bytes.subarray(0, readSync(memory, bytes, 0, count, address))
    } finally {
      closeSync(memory)
    }
  }, Buffer.alloc(0))
}

/** @returns the process that it is of */
export function processOf (thread: number): number {
  return Number(/^Tgid:\s*(\d+)$/m.exec(textIn(`/proc/${thread}/status`))?.[1] ?? thread)
}

/**
 * What a descriptor of another process is: proc_pid_fdinfo(5), proc_pid_fd(5). Returns `flags`: null where there is
 * none; `waits`: calls on it wait; `inode`: what tells a socket from all others.
 */
export function descriptorOf ({ pid, fd }: { pid: number, fd: number },
  calls: Pick<SystemCalls, 'protocolOf'>
): { flags: number | null, protocol: string, inode: number, waits: boolean, isClosedOnExec: boolean } {
  const file = `/proc/${pid}/fd/${fd}`
  const text = /^flags:\s*(\d+)$/m.exec(textIn(`/proc/${pid}/fdinfo/${fd}`))?.[1]
  const flags = Number.parseInt(text ?? '0', 8)
  return { flags: text === undefined ? null : flags, protocol: calls.protocolOf(file), inode: socketAt(file),
    waits: (flags & O_NONBLOCK) === 0, isClosedOnExec: (flags & O_CLOEXEC) !== 0 }
}

/**
 * `name`: a sockaddr; `socket`: that is to have it; `folder`: that paths start from. Returns null: nothing that the
 * copies of a program could share, such as any free port.
 */
export function socketQuery (name: Buffer, { protocol, isV6Only }: { protocol: string, isV6Only: () => boolean },
  folder: () => string): SocketQuery | null
{
  const place = readPlace(name)
  if (place === null) return null
  if ('path' in place)
    return UNIX_STREAMS.includes(protocol) ? unixQuery(place.path, path.resolve(folder(), place.path)) : null
  const addressType = TYPES[protocol]
  if (place.port === 0 || addressType === undefined) return null
  return { address: place.address, port: place.port, addressType,
    flags: String(addressType).endsWith('6') && isV6Only() ? V6_ONLY : 0, index: 0 }
}

/** `address`: the same, absolute */
function unixQuery (asked: string, address: string): SocketQuery {
  return { address, port: -1, addressType: -1, index: 0, ...(asked !== address && { asked }) }
}

/** `name`: the sockaddr of a socket that nobody shares @returns as a URL */
export function ownAddressOf (name: Buffer): string {
  const place = readPlace(name)
  return place === null
    ? 'unknown'
    : addressOf('path' in place ? { address: place.path, port: -1, addressType: -1 } : { ...place, addressType: 4 })
}

/** @returns as a URL */
export function addressOf (
  { address, port, addressType }: Pick<SocketQuery, 'address' | 'port' | 'addressType'>
): string {
  if (port === -1) return `unix:${address}`
  const host = address === '0.0.0.0' || address === '::'
    ? 'localhost'
    : isIPv4(String(address))
    ? address
    : `[${address}]`
  return `${isUdp({ addressType }) ? 'udp' : schemeOf(Number(port))}://${host}:${port}`
}

/** Nobody knows what a program speaks, but nearly all speak HTTP, and whoever reads an address wants to open it. */
function schemeOf (port: number) {
  return HTTPS_PORTS.has(port) ? 'https' : OTHER_PORTS.has(port) ? 'tcp' : 'http'
}

/** Null: of another family, or a name without a file */
function readPlace (name: Buffer): { address: string, port: number } | { path: string } | null {
  const family = name.length >= 2 ? name.readUInt16LE(0) : -1
  if (family === AF_INET && name.length >= 8)
    return { address: [...name.subarray(4, 8)].join('.'), port: name.readUInt16BE(2) }
  if (family === AF_INET6 && name.length >= 24)
    return { address: textOfV6(name.subarray(8, 24)), port: name.readUInt16BE(2) }
  if (family !== AF_UNIX || name.length < 4 || name[2] === 0) return null
  const end = name.indexOf(0, 2)
  return { path: name.toString('utf8', 2, end === -1 ? name.length : end) }
}

/** `bytes`: of an IPv6 address @returns as RFC 5952 has it */
export function textOfV6 (bytes: Buffer): string {
  const groups = Array.from({ length: 8 }, (_, index) => bytes.readUInt16BE(2 * index).toString(16))
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1)
}
