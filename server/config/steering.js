/**
 * The commands for a rollout that runs, alike in the lifecycle, in the paths of the API and on the command line.
 * @typedef {'pause' | 'resume' | 'abort' | 'promote' | 'retry'} Steering
 */

/** @type {readonly Steering[]} */
export const STEERING = Object.freeze(['pause', 'resume', 'abort', 'promote', 'retry'])
