import { readFileSync } from 'node:fs'
import path from 'node:path'
import { tempFolder } from '../../support/folder.js'
import { freePort } from '../../support/ports.js'
import { untilAnswer } from './client.js'

/** @typedef {import('./peers.js').Peer} Peer */

/** As lines begin in which a call is begun: pid, time, name. */
const CALL = /^(\d+) +(\d+\.\d+) (\w+)\(/

/** @param {Peer} peer @param {number} workers @returns {Promise<import('./rows.js').Cell>} */
export async function timeFirstAnswer (peer, workers) {
  return { ms: (await startAndStop(peer, workers)).tookMs }
}

/** @param {Peer} peer @param {number} workers @returns {Promise<import('./rows.js').Cell>} */
export async function countSyscalls (peer, workers) {
  const file = path.join(tempFolder(), 'calls')
  // Detached, so that the program is the child of who starts it, and its pid is known.
  const { answeredAt } = await startAndStop(peer, workers, ['strace', '-D', '-f', '-qq', '-ttt', '-s', '0', '-o', file])
  const calls = readFileSync(file, 'latin1').split('\n').map((line) => CALL.exec(line)).filter((call) => call !== null && Number(call[2]) * 1000 <= answeredAt)
  return {
    calls: calls.length,
    'files opened': calls.filter((call) => call?.[3].startsWith('open')).length,
    processes: new Set(calls.filter((call) => call?.[3] === 'execve').map((call) => call?.[1])).size
  }
}

/** @param {Peer} peer @param {number} workers @param {string[]} [through] */
async function startAndStop (peer, workers, through) {
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
