import { closeSync, constants, openSync } from 'node:fs'

/**
 * Whether this process was started from a terminal, whose end is told it by SIGHUP: it has a controlling one, see
 * credentials(7), wherever its input and output go. What setsid, a service manager or a container starts has none.
 */
export function hasControllingTerminal () {
  try {
    closeSync(openSync('/dev/tty', constants.O_RDONLY | constants.O_NOCTTY))
    return true
  } catch {
    // ENXIO: it has none. ENOENT, EACCES: nor can there be one.
    return false
  }
}
