/** @typedef {typeof APP_STATES[number]} AppState */

/** The states of an app of a host. `waiting`: for the apps that it depends on; `failed`: the host cannot run it. */
export const APP_STATES = Object.freeze(/** @type {const} */ (['waiting', 'starting', 'running', 'stopping', 'stopped', 'failed']))
