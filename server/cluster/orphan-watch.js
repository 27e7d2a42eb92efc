import { isAlive } from '../system/process-identity.js'

const POLL_MS = 100
/** After a process is gone, the keeper may need this long to tell how it ended. */
const TOLD_WITHIN_MS = 3000

/**
 * Watches a process that another master has started, so that the system tells this one nothing of its end.
 * @param {import('../system/process-identity.js').ProcessIdentity} identity
 * @param {{ isTold: boolean, onGone: () => void }} how  `isTold`: whether a keeper tells how it ends; `onGone`: no keeper has, in time
 * @returns {() => void} stops
 */
export function watchOrphan (identity, { isTold, onGone }) {
  /** @type {number | undefined} */
  let goneSince
  const timer = setInterval(() => {
    if (isAlive(identity)) return
    goneSince ??= performance.now()
    if (!isTold || performance.now() - goneSince >= TOLD_WITHIN_MS) onGone()
  }, POLL_MS)
  return function stop () { clearInterval(timer) }
}
