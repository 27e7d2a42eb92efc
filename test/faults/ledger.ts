import { closeSync, openSync, readSync } from 'node:fs'
import type { Exchange } from './clients.ts'

const CHUNK_BYTES = 64 * 1024
/** From this process's own clock to the one of all processes. */
const CLOCK_OFFSET_MS = Number(process.hrtime.bigint()) / 1e6 - performance.now()

export type Ledger = ReturnType<typeof openLedger>

/** What the processes of test/fixtures/serves-every-way.js write down. `file`: made if it is not there. */
export function openLedger (file: string) {
  const fd = openSync(file, 'a+')
  const chunk = Buffer.alloc(CHUNK_BYTES)
  let position = 0
  let rest = ''

  const ledger = {
    /** Which processes have begun a request, by its id. */
    begun: new Map() as Map<string, number[]>,
    /** Which process has accepted a connection last, by both ports, which come back. */
    accepted: new Map() as Map<string, { pid: number, at: number }>,

    /** Reads what has been written since the last time. */
    read () {
      for (let length = next(); length > 0; length = next()) {
        const lines = (rest + chunk.toString('latin1', 0, length)).split('\n')
        rest = lines.pop() ?? ''
        lines.forEach(take)
      }
      return ledger
    },

    /** @returns which process has it */
    ownerOf (
      { id, connection, isFirst, startedAt }: Pick<Exchange, 'id' | 'connection' | 'isFirst' | 'startedAt'>
    ): number | undefined {
      const last = ledger.accepted.get(String(connection))
      const isItsOwn = last && (!isFirst || last.at >= Math.floor(startedAt + CLOCK_OFFSET_MS))
      return ledger.begun.get(id)?.at(-1) ?? (isItsOwn ? last.pid : undefined)
    },

    close: () => closeSync(fd)
  }
  return ledger

  function next () {
    const length = readSync(fd, chunk, 0, CHUNK_BYTES, position)
    position += length
    return length
  }

  function take (line: string) {
    const [kind, what, pid, at] = line.split(' ')
    if (kind === 'connection') ledger.accepted.set(what, { pid: Number(pid), at: Number(at) })
    else ledger.begun.set(what, [...ledger.begun.get(what) ?? [], Number(pid)])
  }
}
