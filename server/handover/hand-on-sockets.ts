import dgram from 'node:dgram'
import net from 'node:net'
import { handleOf } from '../../workers/descriptor.ts'
import { loadPosix } from '../system/posix.ts'

/**
 * This is a program of its own. It sends the sockets that are its descriptors from 4 on, whose kinds are its arguments,
 * through its channel, and ends once the other end disconnects: a channel that ends earlier takes along what was not
 * read yet. It neither listens nor receives on any of them.
 */
const FIRST_FD = 4

// Without it nothing would keep this process until then.
process.channel?.ref()
process.argv.slice(2).forEach((kind, index) =>
  process.send?.({ index }, open(kind, FIRST_FD + index), undefined, (error) => {
    // The other end has gone.
    if (error) process.exitCode = 1
  })
)

function open (kind: string, fd: number) {
  const handle = kind === 'datagram'
    ? openDatagrams(fd)
    : openAsItIs(fd) ?? net._createServerHandle(null, null, null, fd)
  if (typeof handle === 'number') throw new Error(`descriptor ${fd} is no socket of the kind ${kind} (${handle})`)
  return handle
}

/**
 * libuv has calls on each socket that it opens not wait any more, for whoever else has it: a program that waits in
 * accept(2) would fail. So it opens another one, whose number then leads to the socket.
 */
function openAsItIs (fd: number) {
  const posix = loadPosix()
  const other = posix?.unixSocket() ?? -1
  const handle = other < 0 ? null : net._createServerHandle(null, null, null, other)
  return handle && posix?.duplicate(fd, other) ? handle : null
}

/** A socket of node:dgram that is bound would receive, so only its handle is used. */
function openDatagrams (fd: number) {
  const handle = handleOf(dgram.createSocket('udp4'))
  return handle.open(fd) || handle
}
