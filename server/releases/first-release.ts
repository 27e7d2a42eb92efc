import { realpath } from 'node:fs/promises'
import { releaseNumber } from '../config/release-id.ts'
import { isOldNode, isProgram } from '../system/app-node.ts'
import { placeIn } from './resolve.ts'
import type { Release } from '../lifecycle/state.ts'
import { NO_FACTS, type Item } from './catalogue.ts'
import type { Launches } from './launches.ts'
import type { Stock } from './stock.ts'

// The release that a master begins with, where it ran before.

/** @returns what ran last, where it was made of a commit and still has what is configured */
export async function lastOfCommit ({ last, dataDir, config }: Stock): Promise<Release | null> {
  if (last?.build === undefined) return null
  const top = await realpath(dataDir.releaseFolder).catch(() => null)
  const found = top === null
    ? null
    : await placeIn(last.path, { top, entry: config.entry, cwd: config.cwd, runtime: config.runtime }).catch(() => null)
  return found && 'entry' in found && found.entry === last.entry ? last : null
}

/**
 * Takes over the release that ran under another master, as its checkpoint describes it. No checkpoint has the values of
 * variables, so these are read anew.
 */
export function adoptRelease ({ config, catalogue, now }: Stock, launches: Launches, release: Release): Release {
  // Where an old Node runs the app, its file is among the arguments.
  const { args, execArgv } =
    (release.runtime !== config.runtime || release.entry === release.node?.file
      ? catalogue.find(release.id)?.release
      : undefined) ?? config
  const { environmentChanged: _, ...before } = { args, execArgv, runtime: config.runtime, ...release,
    ...nodeOf(release, config) }
  const spec = launches.known()
  const isOther = spec !== null && before.environment !== undefined && before.environment.digest !== spec.digest
  const adopted = isOther ? { ...before, environmentChanged: true } : before
  const number = releaseNumber(release.id)
  catalogue.countFrom(number)
  // If its marks are known, they are those of its deploy.
  const fresh: Omit<Item, 'release' | 'spec'> = { ...NO_FACTS, outcome: 'succeeded', deployedMs: null, servedMs: now(),
    marks: launches.latest().marks }
  catalogue.put(number, { ...fresh, ...catalogue.find(release.id), release: adopted, spec })
  return adopted
}

/** The Node that it had, if it is still there: its version may be another one by now. */
function nodeOf ({ node, runtime = 'node' }: Release, { appNode }: Stock['config']): Pick<Release, 'node'> {
  if (!appNode || (runtime === 'node' ? isOldNode(appNode.version) : !node)) return {}
  return !node || node.file === appNode.file || !isProgram(node.file)
    ? { node: { ...appNode, ...(node?.file === appNode.file && { by: node.by }) } }
    : {}
}
