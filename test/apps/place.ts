import path from 'node:path'
import { tempFolder } from '../support/folder.ts'
import { freePort } from '../support/ports.ts'

/** Where a program is to be, and what it may use there. */
export type Place = {
  /** where it is installed */
  folder: string,
  /** a free one */
  port: number,
  /** another one */
  secondPort: number,
  /** an empty folder, for whatever it keeps */
  state: string,
  /** the path of a Unix socket */
  socket: string,
  /** an HTTP server for proxies to ask */
  upstream: string
}

export async function findPlace (folder: string, upstream: string): Promise<Place> {
  const port = await freePort()
  let secondPort = port
  while (secondPort === port) secondPort = await freePort()
  const state = tempFolder()
  return { folder, port, secondPort, state, socket: path.join(state, 'app.sock'), upstream }
}
