import { linkAt, namesIn, socketAt, textIn } from '../system/proc.ts'

/** `set`, `number`: descriptors of the program; `data`: what it is told with an event */
type Entry = { set: number, number: number, events: number, data: bigint }

const IS_SET = 'anon_inode:[eventpoll]'
/** A row of an epoll descriptor, of which the kernel tells the inode since Linux 4.12: proc_pid_fdinfo(5). */
const ROW = /^tfd:\s*(\d+)\s+events:\s*([0-9a-f]+)\s+data:\s*([0-9a-f]+)(?:.*?\bino:([0-9a-f]+))?/gm

/** `inode`: of a socket. Returns all descriptors that the process has of it. */
export function descriptorsOf (pid: number, inode: number): number[] {
  return namesIn(`/proc/${pid}/fd`).filter((name) => socketAt(`/proc/${pid}/fd/${name}`) === inode).map(Number)
}

/**
 * The epoll sets of a process that a socket is in: a set knows a file, not its number, so a socket that takes the place
 * of another is in none. `inode`: of the socket.
 */
export function setsWith (pid: number, inode: number): Entry[] {
  const sets = namesIn(`/proc/${pid}/fd`).filter((name) => linkAt(`/proc/${pid}/fd/${name}`) === IS_SET)
  return sets.flatMap((set) =>
    Array.from(textIn(`/proc/${pid}/fdinfo/${set}`).matchAll(ROW)).filter(([, , , , ino]) =>
      Number.parseInt(ino, 16) === inode
    ).map(([, number, events, data]) => ({ set: Number(set), number: Number(number),
      events: Number.parseInt(events, 16), data: BigInt(`0x${data}`) })
    )
  )
}
