import { endianness } from 'node:os'
import path from 'node:path'
import { linkAt, textIn } from '../system/proc.ts'
import { addressOf, textOfV6 } from './socket-request.ts'

/** TCP_LISTEN, and the flag of a Unix socket that accepts connections: proc_pid_net(5). */
const LISTENING = '0A'
const ESTABLISHED = '01'
const ACCEPTS = 0x10000

type TcpListener = { inode: number, host: string, port: number, path?: undefined }
/** `path`: as the process gave it that has bound it */
export type Listener = TcpListener | { inode: number, host?: undefined, port?: undefined, path: string }

/**
 * What processes listen on in the network namespace of one of them. `inodes`: of the sockets that count. Returns URLs
 * by the inode; of TCP and Unix sockets.
 */
export function listeningSockets (pid: number, inodes: ReadonlySet<number>): Map<number, string> {
  return new Map(listenersOf(pid).filter(({ inode }) => inodes.has(inode)).map((each) => [each.inode, urlOf(each)]))
}

/** @returns all TCP and Unix sockets of its network namespace that accept connections */
export function listenersOf (pid: number | 'self'): Listener[] {
  const tcp = [...rowsOf(pid, 'tcp'), ...rowsOf(pid, 'tcp6')].filter(({ 3: state }) => state === LISTENING)
  return [...tcp.map((fields) => ({ inode: Number(fields[9]), ...placeIn(fields) })),
    ...rowsOf(pid, 'unix').flatMap(readUnix)]
}

/** `inodes`: of the sockets that count. Returns how many of them are connections to these ports of this machine. */
export function countConnections (pid: number, inodes: ReadonlySet<number>, ports: ReadonlySet<number>): number {
  const rows = [...rowsOf(pid, 'tcp'), ...rowsOf(pid, 'tcp6')]
  return rows.filter((fields) =>
    fields[3] === ESTABLISHED && inodes.has(Number(fields[9])) && ports.has(placeIn(fields).port)
  ).length
}

function urlOf ({ host, port, path: address }: Listener): string {
  return addressOf(
    address === undefined ? { address: host, port, addressType: 4 } : { address, port: -1, addressType: -1 }
  )
}

function placeIn ([, local]: string[]) {
  const [address, port] = local.split(':')
  return { host: textOf(address), port: Number.parseInt(port, 16) }
}

function readUnix ([, , , flags, , , inode, address = '']: string[]): Listener[] {
  return (Number.parseInt(flags, 16) & ACCEPTS) === 0 || address === '' ? [] : [{ inode: Number(inode), path: address }]
}

/** `file`: as the process has bound it @returns absolute; of the abstract namespace as it is */
export function absolutePath (pid: number, file: string): string {
  return file.startsWith('@') ? file : path.resolve(linkAt(`/proc/${pid}/cwd`) || '/', file)
}

/** `hex`: words as the machine has them */
function textOf (hex: string): string {
  const bytes = Buffer.from(hex, 'hex')
  if (endianness() === 'LE') bytes.swap32()
  if (bytes.length === 4) return bytes.join('.')
  return textOfV6(bytes)
}

/** @returns the fields of each row */
function rowsOf (pid: number | 'self', table: string): string[][] {
  return textIn(`/proc/${pid}/net/${table}`).split('\n').slice(1).filter(Boolean).map((row) => row.trim().split(/\s+/))
}
