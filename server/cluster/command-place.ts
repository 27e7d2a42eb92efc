import { dirname } from 'node:path'
import { pathWithNode } from '../system/app-node.ts'
import { SHELL_VARIABLE, withoutOwnVariables } from '../system/own-variables.ts'
import { isFolder } from '../system/working-folder.ts'
import type { Release } from '../lifecycle/state.ts'

/** @throws {DeckError} why its variables are not known */
export type PlaceOf = (release: Release) => { release: string, cwd: string, env: Record<string, string | undefined> }

/**
 * A command that belongs to a release runs in the folder of its workers, with their variables. Returns what says where.
 * `defaultFolder`: for a release that has none
 */
export function placesOf ({ environment, inherited: inheritedBy }: {
  /** of the workers of a release, over what is inherited */
  environment: (id: string) => Record<string, string | undefined>,
  /** of the shell that the app is from */
  inherited: (id: string) => Record<string, string | undefined>
}, defaultFolder: string): PlaceOf {
  return function placeOf (release) {
    const [own, inherited] = [environment(release.id), inheritedBy(release.id)]
    const folder = release.cwd ?? defaultFolder
    return { release: release.id, cwd: isFolder(folder) ? folder : dirname(release.entry),
      env: { ...withoutOwnVariables({ ...inherited, ...own }),
        PATH: pathWithNode(release.node, own.PATH ?? inherited.PATH), [SHELL_VARIABLE]: inherited[SHELL_VARIABLE],
        CLUSTERDECK_RELEASE: release.id } }
  }
}
