/** @typedef {typeof APP_STATES[number]} AppState */

/** The states of an app of a host. `waiting`: for the apps that it depends on; `failed`: the host cannot run it. */
export const APP_STATES = Object.freeze(/** @type {const} */ (['waiting', 'starting', 'running', 'stopping', 'stopped', 'failed']))

/** What is shown of an app that tells nothing of its workers. @type {Readonly<Record<AppState, { tone: 'info' | 'drain' | 'idle' | 'bad', text: string }>>} */
export const WITHOUT_WORKERS = Object.freeze({
  waiting: { tone: 'info', text: 'Waiting' },
  starting: { tone: 'info', text: 'Starting' },
  running: { tone: 'info', text: 'Running' },
  stopping: { tone: 'drain', text: 'Stopping' },
  stopped: { tone: 'idle', text: 'Stopped' },
  failed: { tone: 'bad', text: 'Cannot run' }
})
