import type { Release } from '../lifecycle/state.ts'

/** How a release differs from the one before. */
export type Changed = NonNullable<Release['changed']>

/** Parts that can differ between two releases, with their names for people. */
const PARTS: readonly [Exclude<keyof Changed, 'from' | 'environment'>, string][] = Object.freeze([['commit', 'commit'],
  ['package', 'package.json'], ['lockFile', 'lock file'], ['node', 'Node'], ['arguments', 'arguments'], ['mode',
  'mode'], ['folder', 'folder'], ['entry', 'entry']])

/** Names the parts that differ, for people; the variables are not among them. */
export function changedParts (changed: Changed): string[] {
  return PARTS.filter(([part]) => changed[part]).map(([, name]) => name)
}
