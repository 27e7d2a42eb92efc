import { isAlive, type ProcessIdentity } from '../system/process-identity.ts'

const POLL_MS = 100
/** After a process is gone, the keeper may need this long to tell how it ended. */
const TOLD_WITHIN_MS = 3000

/**
 * Watches a process that another master has started, so that the system tells this one nothing of its end.
 * @param how `isTold`: whether a keeper tells how it ends; `onGone`: no keeper has, in time
 * @returns stops
 */
export function watchOrphan (identity: ProcessIdentity,
  { isTold, onGone }: { isTold: boolean, onGone: () => void }): () => void
{
  let goneSince: number | undefined
  const timer = setInterval(() => {
    if (isAlive(identity)) return
    goneSince ??= performance.now()
    if (!isTold || performance.now() - goneSince >= TOLD_WITHIN_MS) onGone()
  }, POLL_MS)
  return function stop () {
    clearInterval(timer)
  }
}
