import { closeSync, openSync, readSync } from 'node:fs'

const CHUNK_BYTES = 64 * 1024

/** @typedef {ReturnType<typeof openLedger>} Ledger */

/**
 * What the processes of test/fixtures/serves-every-way.js write down.
 * @param {string} file made if it is not there
 */
export function openLedger (file) {
  const fd = openSync(file, 'a+')
  const chunk = Buffer.alloc(CHUNK_BYTES)
  let position = 0
  let rest = ''

  const ledger = {
    /** Which processes have begun a request, by its id. @type {Map<string, number[]>} */
    begun: new Map(),
    /** Which process has accepted a connection, by both ports; the last one, as ports come back. @type {Map<string, number>} */
    accepted: new Map(),

    /** Reads what has been written since the last time. */
    read () {
      for (let length = next(); length > 0; length = next()) {
        const lines = (rest + chunk.toString('latin1', 0, length)).split('\n')
        rest = lines.pop() ?? ''
        lines.forEach(take)
      }
      return ledger
    },

    /** @param {{ id: string, connection: string | undefined }} exchange @returns {number | undefined} which process has it */
    ownerOf: ({ id, connection }) => ledger.begun.get(id)?.at(-1) ?? ledger.accepted.get(String(connection)),

    close: () => closeSync(fd)
  }
  return ledger

  function next () {
    const length = readSync(fd, chunk, 0, CHUNK_BYTES, position)
    position += length
    return length
  }

  function take (/** @type {string} */ line) {
    const [kind, what, pid] = line.split(' ')
    if (kind === 'connection') ledger.accepted.set(what, Number(pid))
    else ledger.begun.set(what, [...ledger.begun.get(what) ?? [], Number(pid)])
  }
}
