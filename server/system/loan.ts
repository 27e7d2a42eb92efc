import { mkdtempSync, rmSync } from 'node:fs'
import net from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'

/** sun_path of unix(7), without its last byte. */
const LONGEST_PATH_BYTES = 107
const TAKEN_WITHIN_MS = 10_000
const SOCKET = 'socket'

export type Loan = Awaited<ReturnType<typeof lend>>

/**
 * Makes a folder for sockets that no other user can enter. `below`: if the paths of the sockets do not get too long
 * there; `longestName`: of a socket.
 */
export function makeSocketFolder (below: string, prefix: string, longestName: string) {
  const isShort = Buffer.byteLength(path.join(below, `${prefix}XXXXXX`, longestName)) <= LONGEST_PATH_BYTES
  return mkdtempSync(path.join(isShort ? below : tmpdir(), prefix))
}

/**
 * Gives a text once, within a few seconds, to a process of this user on this machine, and so to nobody by the network.
 * `below`: a folder of ours. Returns `path`: for take().
 */
export async function lend (content: string,
  { below, takenWithinMs = TAKEN_WITHIN_MS }: { below: string, takenWithinMs?: number }
): Promise<{ path: string, over: Promise<void>, close: () => void }> {
  const folder = makeSocketFolder(below, 'lend-', SOCKET)
  const file = path.join(folder, SOCKET)
  const server = net.createServer((connection) => {
    // ECONNRESET, EPIPE: whoever has come is gone again.
    connection.on('error', () => {})
    connection.end(content)
    close()
  })
  const timer = setTimeout(close, takenWithinMs).unref()
  const over = new Promise<void>((resolve) => {
    server.once('close', () => resolve())
  })
  await new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(file, () => resolve(undefined))
  }).catch((error) => {
    close()
    throw error
  })
  return { path: file, over, close }

  function close () {
    clearTimeout(timer)
    server.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** `file`: of lend() @throws ENOENT, ECONNREFUSED: it has been taken, or the time is up */
export async function take (file: string): Promise<string> {
  return await text(net.connect(file))
}
