import pino from 'pino'

/**
 * The master's own log: what went wrong inside it, one JSON object a line. What happens to the workers is in the history.
 * @param {string} file
 */
export function createLog (file) {
  // Written at once: the last line before an end is the one that is needed.
  return pino({ base: { pid: process.pid } }, pino.destination({ dest: file, sync: true, mkdir: true }))
}
