import { constants } from 'node:os'
import { getSystemErrorName } from 'node:util'
import { bindDatagrams, bindHandle, EADDRINUSE } from '../../workers/descriptor.ts'
import { isUdp } from '../../workers/protocol.ts'
import { setBindOptions } from '../programs/socket-options.ts'
import { loadPosix } from '../system/posix.ts'
import { V6_ONLY } from './socket-group.ts'
import { bindUnixPath, type UnixPath } from './unix-path.ts'
import type { BindOptions, SocketQuery } from '../../workers/protocol.ts'
import type { DatagramHandle, SocketHandle } from '../../workers/node-internals.d.ts'
import type { Handle } from './worker-handle.ts'

export type BindError = { address: string, code: string, message: string }

/** Binds without listening, by the call that node:cluster's primary uses for its shared handles. */
export function bindSocket (
  query: SocketQuery
): { handle: Handle, path?: UnixPath, errno?: undefined } | { handle?: undefined, errno: number } {
  const { address, port } = query
  if (isUdp(query)) return bindUdpSocket(query)
  return port === -1 && address?.startsWith('/') ? bindPath(query, address) : bindTcp(query)
}

export function bindTcp (
  query: SocketQuery
): { handle: SocketHandle, errno?: undefined } | { handle?: undefined, errno: number } {
  const handle = bindHandle(query)
  return typeof handle === 'number' ? { errno: handle } : { handle }
}

function bindPath (query: SocketQuery, file: string): ReturnType<typeof bindUnixPath> {
  // A worker has it already, perhaps without listening yet: then nobody answers there.
  if (query.index > 0) return { errno: EADDRINUSE }
  return bindUnixPath(file, query.mode, (address) => bindHandle({ ...query, address }))
}

export function isTcpPort (query: Pick<SocketQuery, 'port' | 'addressType'>) {
  return !isUdp(query) && query.port !== null && query.port >= 0
}

function bindUdpSocket (query: SocketQuery & { addressType: 'udp4' | 'udp6' }) {
  const { address, port, flags, before } = query
  const place = { address: String(address), port: Number(port), isV6Only: Boolean((flags ?? 0) & V6_ONLY) }
  const handle = bindDatagrams(query, before && ((each) => bindPrepared(each, place, before)))
  return typeof handle === 'number' ? { errno: handle } : { handle }
}

/** @returns 0, or an error number below 0 */
function bindPrepared (handle: DatagramHandle, place: { address: string, port: number, isV6Only: boolean },
  before: BindOptions): number
{
  const { fd, errno = -constants.errno.ENOSYS } =
    loadPosix()?.bindUdp({ ...place, prepare: (each) => setBindOptions(each, before) }) ?? {}
  return fd === undefined ? errno : handle.open(fd)
}

export function describeBindError ({ address, port }: SocketQuery, errno: number): BindError {
  const code = getSystemErrorName(errno)
  const where = port !== null && port >= 0 ? (address ? `${address}:${port}` : `port ${port}`) : String(address)
  const what = code === 'EADDRINUSE' ? 'is in use' : code === 'EACCES' ? 'is not permitted' : 'cannot be bound'
  return { address: where, code, message: `${where} ${what} (${code})` }
}
