import path from 'node:path'

/** @typedef {import('../config/options.js').Option} Option */

/**
 * The words of a command line that say what an option has said, wherever that is run.
 * @param {Option} option @param {string} value @param {string} cwd that a relative path begins at
 * @returns {string[]}
 */
export function flagOf ({ flag, kind }, value, cwd) {
  return kind === 'switch' ? [flag] : [flag, kind === 'path' ? path.resolve(cwd, value) : value]
}
