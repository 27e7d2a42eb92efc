import { closeSync, constants, openSync } from 'node:fs'
import { succeeds } from '../errors.ts'

/**
 * Whether this process was started from a terminal, whose end is told it by SIGHUP: it has a controlling one, see
 * credentials(7), wherever its input and output go. What setsid, a service manager or a container starts has none.
 */
export function hasControllingTerminal () {
  // ENXIO: it has none. ENOENT, EACCES: nor can there be one.
  return succeeds(() => closeSync(openSync('/dev/tty', constants.O_RDONLY | constants.O_NOCTTY)))
}
