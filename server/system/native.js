import { createRequire } from 'node:module'

/**
 * Functions of the C library, by the optional package koffi, which is loaded with the first of them that is needed.
 * @template T
 * @param {(koffi: any) => T | null} bind  null: not on this machine
 * @returns {() => T | null} null where they cannot be had: not Linux, or the package is absent
 */
export function bindOnce (bind) {
  /** @type {T | null | undefined} */
  let bound
  return () => {
    if (bound === undefined) bound = load()
    return bound
  }

  function load () {
    try {
      return process.platform === 'linux' ? bind(createRequire(import.meta.url)('koffi')) : null
    } catch {
      // No binary for this machine.
      return null
    }
  }
}
