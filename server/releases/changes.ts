import path from 'node:path'
import { changedNames, type Marks } from './environment.ts'
import type { Release } from '../lifecycle/state.ts'

/** Tells how a release differs from the one before. Of variables it tells only the names. */
export function changesBetween ({ release: before, marks }: { release: Release, marks: Marks },
  { release: after, marks: newMarks }: { release: Omit<Release, 'id' | 'createdAt'>, marks: Marks }
): NonNullable<Release['changed']> {
  return {
    from: before.id,
    environment: changedNames(marks, newMarks),
    arguments: !isSame(before, after, 'arguments'),
    package: !isSame(before, after, 'package'),
    commit: (before.git?.commit ?? null) !== (after.git?.commit ?? null),
    lockFile: !isSame(before, after, 'lockFile'),
    // Releases of older versions of clusterdeck do not tell.
    node: before.node !== undefined && !isSameNode(before, after),
    mode: before.mode !== after.mode,
    // A copy is always in another folder.
    folder: (before.source ?? before.path) !== (after.source ?? after.path),
    entry: path.relative(before.path, before.entry) !== path.relative(after.path, after.entry)
  }
}

/**
 * Tells whether two descriptions must be of the same code with the same variables and arguments. A plain folder or a
 * changed checkout never is sure enough.
 */
export function isTheSame (release: Release, found: Omit<Release, 'id' | 'createdAt'>) {
  if (found.mode === 'live' || (found.mode !== 'folder' && found.git && found.git.isDirty !== false)) return false
  if (release.mode !== found.mode || !isSameCwd(release, found) ||
    release.environment?.digest !== found.environment?.digest) return false
  /** a copy is known by the folder that it was made of */
  const places: (keyof Release)[] = found.mode === 'folder' ? ['source'] : ['entry', 'path']
  const names: (keyof Release)[] = ['package', 'lockFile', 'arguments', ...places]
  return isSameCheckout(release.git, found.git) && isSameNode(release, found) &&
    names.every((name) => isSame(release, found, name))
}

/** In a copy it is another folder at the same place. */
function isSameCwd (one: Pick<Release, 'path' | 'cwd'>, other: Pick<Release, 'path' | 'cwd'>) {
  return one.cwd === other.cwd || path.relative(one.path, one.cwd ?? '') === path.relative(other.path, other.cwd ?? '')
}

function isSame (one: Partial<Release>, other: Partial<Release>, name: keyof Release) {
  return JSON.stringify(one[name] ?? null) === JSON.stringify(other[name] ?? null)
}

function isSameNode ({ node: one }: Pick<Release, 'node'>, { node: other }: Pick<Release, 'node'>) {
  return one?.file === other?.file && one?.version === other?.version
}

/** `other`: what is told beside these follows from them */
function isSameCheckout (one: Release['git'], other: Release['git']) {
  return one?.commit === other?.commit && one?.branch === other?.branch && one?.isDirty === other?.isDirty
}
