import { readFileSync } from 'node:fs'
import path from 'node:path'
import { tempFolder } from '../../support/folder.ts'
import { freePort } from '../../support/ports.ts'
import { untilAnswer } from './client.ts'
import type { Peer } from './peers.ts'
import type { Cell } from './rows.ts'

/** As lines begin in which a call is begun: pid, time, name. */
const CALL = /^(\d+) +(\d+\.\d+) (\w+)\(/

export async function timeFirstAnswer (peer: Peer, workers: number): Promise<Cell> {
  return { ms: (await startAndStop(peer, workers)).tookMs }
}

export async function countSyscalls (peer: Peer, workers: number): Promise<Cell> {
  const file = path.join(tempFolder(), 'calls')
  // Detached, so that the program is the child of who starts it, and its pid is known.
  const { answeredAt } = await startAndStop(peer, workers, ['strace', '-D', '-f', '-qq', '-ttt', '-s', '0', '-o', file])
  const calls = readFileSync(file, 'latin1').split('\n').map((line) => CALL.exec(line)).filter((call) =>
    call !== null && Number(call[2]) * 1000 <= answeredAt
  )
  return { calls: calls.length, 'files opened': calls.filter((call) => call?.[3].startsWith('open')).length,
    processes: new Set(calls.filter((call) => call?.[3] === 'execve').map((call) => call?.[1])).size }
}

async function startAndStop (peer: Peer, workers: number, through?: string[]) {
  const prepared = await peer.prepare?.()
  const port = await freePort()
  const over = new AbortController()
  const begunAt = performance.now()
  const answering = untilAnswer(port, over.signal).then(() => performance.now())
  try {
    const running = await peer.start(workers, port, { through, prepared })
    const tookMs = await answering - begunAt
    await running.stop()
    return { tookMs, answeredAt: performance.timeOrigin + begunAt + tookMs }
  } finally {
    over.abort()
    await prepared?.end()
  }
}
