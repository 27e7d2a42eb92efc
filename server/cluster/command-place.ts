import { dirname } from 'node:path'
import { pathWithNode } from '../system/app-node.ts'
import { SHELL_VARIABLE, withoutOwnVariables } from '../system/own-variables.ts'
import { isFolder } from '../system/working-folder.ts'
import type { Release } from '../lifecycle/state.ts'

/** Where a command of the user runs that belongs to a release: in the folder of its workers, with their variables. */
export function placeOfRelease (release: Release, { own, inherited, cwd }: {
  /** variables of the workers of the release, over what is inherited */
  own: Record<string, string | undefined>,
  /** of the shell that the app is from */
  inherited: Record<string, string | undefined>,
  /** of a release that has none */
  cwd: string
}): { cwd: string, env: Record<string, string | undefined> } {
  const folder = release.cwd ?? cwd
  return { cwd: isFolder(folder) ? folder : dirname(release.entry),
    env: { ...withoutOwnVariables({ ...inherited, ...own }),
      PATH: pathWithNode(release.node, own.PATH ?? inherited.PATH), [SHELL_VARIABLE]: inherited[SHELL_VARIABLE],
      CLUSTERDECK_RELEASE: release.id } }
}
