import path from 'node:path'
import { openSqlite } from '../../db/sqlite.ts'
import { findProcesses, findProcessesIn, isBound, isListening } from '../support/leftovers.ts'
import type { Trial } from './trial.ts'

/** What a deck that has ended leaves behind, and how its workers ended. Returns what is not as it should be. */
export function examineEnd ({ program, deck, mark, place, killed }: Trial): string[] {
  return [...[place.port, place.secondPort].filter(isListening).map((port) => `port ${port} still listens`),
    ...[place.socket].filter(isBound).map((socket) => `${socket} still listens`),
    ...endWhatIsLeft(mark, place.folder).map((command) => `left running: ${command}`),
    ...describeExits(deck.folder, killed, program.outlivesSigterm ? ['SIGTERM', 'SIGKILL'] : ['SIGTERM'])]
}

/** @returns commands */
function endWhatIsLeft (mark: string, folder: string): string[] {
  const left = [...findProcesses(mark), ...findProcessesIn(folder)]
  const commands = new Map(left.map(({ pid, command }) => [pid, command]))
  for (const pid of commands.keys()) process.kill(pid, 'SIGKILL')
  return [...commands.values()]
}

/** `killed`: those that were killed on purpose; `fitting`: signals that are no fault */
function describeExits (folder: string, killed: number[], fitting: string[]) {
  const db = openSqlite(path.join(folder, 'history.db'), { readonly: true })
  const exits = db.prepare(
    'SELECT pid, cause, code, signal, message FROM events WHERE type = \'worker.exited\' ORDER BY id'
  ).all() as { pid: number, cause: string, code: number | null, signal: string | null }[]
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
 * Some handlers of SIGTERM end by sending it once more, or with the code that shells have for it. Of a worker whose
 * master has died nothing may be known.
 */
function isFitting (code: number | null, signal: string | null, fitting: string[]) {
  return signal ? fitting.includes(signal) : code === null || code === 0 || code === 143
}
