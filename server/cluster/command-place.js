import { delimiter, dirname } from 'node:path'
import { SHELL_VARIABLE, withoutOwnVariables } from '../system/own-variables.js'
import { isFolder } from '../system/working-folder.js'

/**
 * Where a command of the user runs that belongs to a release: in the folder of its workers, with their variables.
 * @param {import('../lifecycle/state.js').Release} release
 * @param {object} around
 * @param {Record<string, string | undefined>} around.own  variables of the workers of the release, over what is inherited
 * @param {Record<string, string | undefined>} around.inherited  of the shell that the app is from
 * @param {string} around.cwd  of a release that has none
 * @returns {{ cwd: string, env: Record<string, string | undefined> }}
 */
export function placeOfRelease (release, { own, inherited, cwd }) {
  const folder = release.cwd ?? cwd
  return {
    cwd: isFolder(folder) ? folder : dirname(release.entry),
    env: {
      ...withoutOwnVariables({ ...inherited, ...own }),
      ...withNode(own.PATH ?? inherited.PATH),
      [SHELL_VARIABLE]: inherited[SHELL_VARIABLE],
      CLUSTERDECK_RELEASE: release.id
    }
  }
}

/** Adds the folder of node, where npm is: the PATH of a service manager is often short. @param {string} [path] */
function withNode (path) {
  const own = dirname(process.execPath)
  return { PATH: path ? `${path}${delimiter}${own}` : own }
}
