import path from 'node:path'
import { homeFolder } from './home-folder.ts'
import { runtimeFolder } from './running-decks.ts'

/**
 * The data folder of this user's host: its list of apps, its token and where it is reached are there.
 * @returns absolute
 */
export function hostFolder (env: Record<string, string | undefined> = process.env): string {
  if (env.CLUSTERDECK_HOST_DIR) return path.resolve(env.CLUSTERDECK_HOST_DIR)
  const state = env.XDG_STATE_HOME
  if (state && path.isAbsolute(state)) return path.join(state, 'clusterdeck')
  const home = homeFolder(env)
  // Whoever has no home, as in many containers, has a list until the next boot.
  return home === null ? path.join(runtimeFolder(env), 'host') : path.join(home, '.local', 'state', 'clusterdeck')
}
