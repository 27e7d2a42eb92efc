import { readCommits } from './git.ts'
import type { Release } from '../lifecycle/state.ts'

const SHOWN_COMMITS = 20

type Checkout = Pick<Release, 'git' | 'source' | 'path' | 'createdAt'>

/**
 * The commits between two releases. The folder of the newer one is asked first, as its repository has more likely both.
 * Returns null: unknown, or none.
 */
export async function commitsBetween (before: Checkout, after: Checkout,
  env: Record<string, string | undefined>): ReturnType<typeof readCommits>
{
  const [from, to] = [before.git?.commit, after.git?.commit]
  if (!from || !to || from === to) return null
  const folders = [after, before].sort((a, b) => Date.parse(b.createdAt) - Date.parse(a.createdAt)).map((
    { source, path }
  ) => source ?? path)
  const which = { from, to, limit: SHOWN_COMMITS }
  return await readCommits(folders[0], which, { env }) ?? await readCommits(folders[1], which, { env })
}
