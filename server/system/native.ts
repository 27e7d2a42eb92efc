import { createRequire } from 'node:module'
import { attempt } from '../errors.ts'

export type Koffi = typeof import('koffi')

/**
 * Functions of the C library, by the optional package koffi, which is loaded with the first of them that is needed.
 * `bind`: null: not on this machine. Returns null where they cannot be had: not Linux, or the package is absent.
 */
export function bindOnce<T> (bind: (koffi: Koffi) => T | null): () => T | null {
  let bound: T | null | undefined
  return () => {
    if (bound === undefined) bound = load()
    return bound
  }

  function load () {
    // There may be no binary for this machine.
    return attempt(() => process.platform === 'linux' ? bind(createRequire(import.meta.url)('koffi')) : null)
  }
}
