/** @typedef {import('./turn.js').Turn} Turn */
/** @typedef {import('./state.js').Worker} Worker */

/** @param {{ path?: string, warmup?: readonly string[] }} ready whether a worker asks its app before it accepts connections */
export function isAsked ({ path, warmup = [] }) {
  return path !== undefined || warmup.length > 0
}

/** @param {Turn} _turn @param {Worker} worker @param {{ text: string }} seen why its app is not ready yet */
export function takeNoteOfProbe (_turn, worker, { text }) {
  if (worker.state === 'starting') worker.probed = text
}

/**
 * @param {Worker} worker that has had its time
 * @param {import('./state.js').LifecycleOptions['ready']} ready
 * @returns {string} what it was not, and what was last seen of it
 */
export function notReadyInTime ({ id, slot, probed, readyTimeoutMs }, ready) {
  const option = readyTimeoutMs === ready.timeoutMs ? 'ready.timeoutMs' : 'rollout.limits.readyTimeoutMs'
  const [first] = [ready.path, ...ready.warmup ?? []].filter(Boolean)
  const seen = isAsked(ready) ? `: ${probed ?? `nobody could be asked for ${first}, as no HTTP server of the app has listened`}` : ''
  return `worker ${id} (slot ${slot}) was not ready within ${readyTimeoutMs} ms (option ${option})${seen}`
}

/** @param {Turn} turn @param {Worker} worker that is ready now @param {{ warmupFailed?: string | null }} report */
export function tellWarmUp (turn, worker, { warmupFailed }) {
  if (warmupFailed) turn.tellOf('worker.warm-up-failed', worker, { message: warmupFailed })
}
