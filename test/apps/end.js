import path from 'node:path'
import { openSqlite } from '../../db/sqlite.js'
import { findProcesses, findProcessesIn, isBound, isListening } from '../support/leftovers.js'

/**
 * What a deck that has ended leaves behind, and how its workers ended.
 * @param {import('./trial.js').Trial} trial @returns {string[]} what is not as it should be
 */
export function examineEnd ({ program, deck, mark, place, killed }) {
  return [
    ...[place.port, place.secondPort].filter(isListening).map((port) => `port ${port} still listens`),
    ...[place.socket].filter(isBound).map((socket) => `${socket} still listens`),
    ...endWhatIsLeft(mark, place.folder).map((command) => `left running: ${command}`),
    ...describeExits(deck.folder, killed, program.outlivesSigterm ? ['SIGTERM', 'SIGKILL'] : ['SIGTERM'])
  ]
}

/** @param {string} mark @param {string} folder @returns {string[]} commands */
function endWhatIsLeft (mark, folder) {
  const left = [...findProcesses(mark), ...findProcessesIn(folder)]
  const commands = new Map(left.map(({ pid, command }) => [pid, command]))
  for (const pid of commands.keys()) process.kill(pid, 'SIGKILL')
  return [...commands.values()]
}

/**
 * @param {string} folder @param {number[]} killed those that were killed on purpose
 * @param {string[]} fitting signals that are no fault
 */
function describeExits (folder, killed, fitting) {
  const db = openSqlite(path.join(folder, 'history.db'), { readonly: true })
  const exits = /** @type {any[]} */ (db.prepare("SELECT pid, cause, code, signal, message FROM events WHERE type = 'worker.exited' ORDER BY id").all())
  db.close()
  const counts = new Map()
  for (const { pid, cause, code, signal } of exits) {
    if (killed.includes(pid) || isFitting(code, signal, fitting)) continue
    const what = `by ${signal ?? `code ${code}`} (${cause})`
    counts.set(what, (counts.get(what) ?? 0) + 1)
  }
  return [...counts].map(([what, count]) => `${count} of ${exits.length} workers ended ${what}`)
}

/**
 * Some handlers of SIGTERM end by sending it once more, or with the code that shells have for it. Of a worker whose master
 * has died nothing may be known.
 * @param {number | null} code @param {string | null} signal @param {string[]} fitting
 */
function isFitting (code, signal, fitting) {
  return signal ? fitting.includes(signal) : code === null || code === 0 || code === 143
}
