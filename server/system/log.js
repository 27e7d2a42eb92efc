import pino from 'pino'

const MAX_UNWRITTEN_CHARS = 64 * 1024

/** @typedef {Record<'error' | 'warn', (fields: object, text: string) => void>} Log  what is used of one */

/**
 * The master's own log: what went wrong inside it, one JSON object a line. What happens to the workers is in the history.
 * @param {string} file
 */
export function createLog (file) {
  return pino({ base: { pid: process.pid } }, openLog(file))
}

/** What comes later is dropped. @param {import('pino').Logger} log of `createLog` */
export function closeLog (log) {
  /** @type {{ destroy?: () => void }} */
  const file = Reflect.get(log, pino.symbols.streamSym)
  file.destroy?.()
}

/** @param {string} file */
function openLog (file) {
  try {
    // Written at once: the last line before an end is the one that is needed. What a full disk does not take is dropped.
    return pino.destination({ dest: file, sync: true, mkdir: true, mode: 0o600, maxLength: MAX_UNWRITTEN_CHARS }).on('error', () => {})
  } catch {
    // ENOSPC, EROFS: no master needs its log.
    return { write () {} }
  }
}
