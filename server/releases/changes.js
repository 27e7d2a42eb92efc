import path from 'node:path'
import { changedNames } from './environment.js'

/** @typedef {import('../lifecycle/state.js').Release} Release */
/** @typedef {import('./environment.js').Marks} Marks */

/**
 * Tells how a release differs from the one before. Of variables it tells only the names.
 * @param {{ release: Release, marks: Marks }} before
 * @param {{ release: Omit<Release, 'id' | 'createdAt'>, marks: Marks }} after
 * @returns {NonNullable<Release['changed']>}
 */
export function changesBetween ({ release: before, marks }, { release: after, marks: newMarks }) {
  return {
    from: before.id,
    environment: changedNames(marks, newMarks),
    arguments: !isSame(before, after, 'arguments'),
    package: !isSame(before, after, 'package'),
    commit: (before.git?.commit ?? null) !== (after.git?.commit ?? null),
    lockFile: !isSame(before, after, 'lockFile'),
    mode: before.mode !== after.mode,
    // A copy is always in another folder.
    folder: (before.source ?? before.path) !== (after.source ?? after.path),
    entry: path.relative(before.path, before.entry) !== path.relative(after.path, after.entry)
  }
}

/**
 * Tells whether two descriptions must be of the same code with the same variables and arguments. A plain folder or a changed checkout
 * never is sure enough.
 * @param {Release} release @param {Omit<Release, 'id' | 'createdAt'>} found
 */
export function isTheSame (release, found) {
  if (found.mode === 'live' || (found.mode !== 'folder' && found.git && found.git.isDirty !== false)) return false
  if (release.mode !== found.mode || !isSameCwd(release, found) || release.environment?.digest !== found.environment?.digest) return false
  /** @type {(keyof Release)[]} a copy is known by the folder that it was made of */
  const places = found.mode === 'folder' ? ['source'] : ['entry', 'path']
  /** @type {(keyof Release)[]} */
  const names = ['package', 'lockFile', 'arguments', ...places]
  return isSameCheckout(release.git, found.git) && names.every((name) => isSame(release, found, name))
}

/** In a copy it is another folder at the same place. @param {Pick<Release, 'path' | 'cwd'>} one @param {Pick<Release, 'path' | 'cwd'>} other */
function isSameCwd (one, other) {
  return one.cwd === other.cwd || path.relative(one.path, one.cwd ?? '') === path.relative(other.path, other.cwd ?? '')
}

/** @param {Partial<Release>} one @param {Partial<Release>} other @param {keyof Release} name */
function isSame (one, other, name) {
  return JSON.stringify(one[name] ?? null) === JSON.stringify(other[name] ?? null)
}

/** @param {Release['git']} one @param {Release['git']} other what is told beside these follows from them */
function isSameCheckout (one, other) {
  return one?.commit === other?.commit && one?.branch === other?.branch && one?.isDirty === other?.isDirty
}
