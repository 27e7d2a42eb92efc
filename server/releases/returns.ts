import { access } from 'node:fs/promises'
import { formatCommit } from '../../public/format.ts'
import { DeckError } from '../errors.ts'
import { caveatText, changeText } from '../lifecycle/drift.ts'
import type { Release } from '../lifecycle/state.ts'
import type { Launches } from './launches.ts'
import type { Stock } from './stock.ts'

export function createReturns (stock: Stock, launches: Pick<Launches, 'checkKind' | 'latestSpec' | 'latest'>) {
  const { catalogue, inPlace } = stock

  return {
    /** Returns the one to roll back to @throws {DeckError} not-found */
    before (id: string): string {
      const last = catalogue.lastGood(id)
      if (!last) {
        throw new DeckError('not-found',
          `No release other than ${id} was deployed successfully and kept; to use one that the guard rolled back, name it`)
      }
      return last.release.id
    },

    /**
     * Refuses a rollback that would start other code than the release has served with.
     * @throws {DeckError} not-found, drifted
     */
    checkReturn (id: string) {
      const { release } = catalogue.mustFind(id)
      const change = inPlace.changeOf(id)
      if (change?.kind !== 'code') return
      const restore = release.git ? `check out ${formatCommit(release.git.commit)}` : 'put the files back'
      throw new DeckError('drifted',
        `${id} cannot come back: ${
          changeText(id, change)
        }. To run its code again, ${restore} and deploy. With releases.mode: folder every release keeps its files`, {
        details: { release: id, ...change }
      })
    },

    checkThere,

    /** @returns what a rollback to it would not bring back */
    caveatOf (id: string): string | null {
      const change = inPlace.changeOf(id)
      return change && change.kind !== 'code' ? caveatText(id, change) : null
    },

    /**
     * Finds a release to roll back to, with its arguments and variables. A release that this master has not started
     * itself gets the variables that were read last, since a rollback must work whatever the configuration looks like
     * by then.
     * @throws {DeckError} not-found, release-gone, or why its variables are not known yet
     */
    async load (id: string): Promise<Release> {
      const item = catalogue.mustFind(id)
      launches.checkKind(item.release, item.release.node)
      await checkThere(item.release)
      if (item.spec === null) {
        item.spec = launches.latestSpec()
        if (item.release.environment?.digest !== item.spec.digest)
          item.release = { ...item.release, environmentChanged: true }
      }
      stock.givenOut = id
      return item.release
    }
  }

  /** @throws {DeckError} release-gone */
  async function checkThere ({ id, entry, node }: Release) {
    for (const file of [entry, ...node ? [node.file] : []]) {
      await access(file).catch((error) => {
        throw new DeckError('release-gone', `release ${id} cannot run: ${file} is gone`, { cause: error })
      })
    }
  }
}
