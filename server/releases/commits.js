import { readCommits } from './git.js'

const SHOWN_COMMITS = 20

/** @typedef {Pick<import('../lifecycle/state.js').Release, 'git' | 'source' | 'path' | 'createdAt'>} Checkout */

/**
 * The commits between two releases. The folder of the newer one is asked first, as its repository has more likely both.
 * @param {Checkout} before @param {Checkout} after @param {Record<string, string | undefined>} env
 * @returns {ReturnType<typeof readCommits>} null: unknown, or none
 */
export async function commitsBetween (before, after, env) {
  const [from, to] = [before.git?.commit, after.git?.commit]
  if (!from || !to || from === to) return null
  const folders = [after, before].sort((a, b) => Date.parse(b.createdAt) - Date.parse(a.createdAt)).map(({ source, path }) => source ?? path)
  const which = { from, to, limit: SHOWN_COMMITS }
  return await readCommits(folders[0], which, { env }) ?? await readCommits(folders[1], which, { env })
}
