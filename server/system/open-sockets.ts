import { namesIn, socketAt } from './proc.ts'

/** @returns the inodes of the sockets that it has open; empty where the system does not tell: proc(5) */
export function socketsOf (pid: number): Set<number> {
  const folder = `/proc/${pid}/fd`
  const inodes = namesIn(folder).map((name) => socketAt(`${folder}/${name}`))
  return new Set(inodes.filter((inode) => inode > 0))
}
