/**
 * What a person can tell a rollout that runs: the command of the lifecycle, the last part of the API's path, the command
 * of the command line.
 * @typedef {typeof STEERING[number]} Steering
 */
export const STEERING = Object.freeze(/** @type {const} */ (['pause', 'resume', 'abort', 'promote', 'retry']))
