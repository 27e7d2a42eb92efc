import { existsSync } from 'node:fs'
import { DeckError } from '../errors.js'
import { resolveRelease } from './resolve.js'

/** @typedef {ReturnType<typeof createReleases>} Releases */
/** @typedef {{ path?: string }} Source what a deploy is made from */

const LISTED = 20

/**
 * Which code a rollout brings.
 * @param {object} parts
 * @param {Pick<import('../config.js').Config, 'entry'>} parts.config
 * @param {Pick<import('../../db/history.js').History, 'page'>} parts.history
 */
export function createReleases ({ config, history }) {
  return {
    /** @param {Source} source @returns {Source} @throws {DeckError} entry-not-found, not-possible */
    check (source) {
      resolveRelease(config.entry)
      return source
    },

    /** @param {Source} _source @throws {DeckError} entry-not-found */
    prepare: async (_source) => resolveRelease(config.entry),

    /** @returns {any[]} those that were deployed last, newest first */
    list: () => history.page({ type: 'release.created', limit: LISTED }).items.map(({ detail, actor }) => ({ createdBy: actor, ...detail })),

    /** @param {string} id @returns {any} a release that was deployed before @throws {DeckError} not-found, release-gone */
    load (id) {
      const event = history.page({ type: 'release.created', release: id, limit: 1 }).items[0]
      if (!event) throw new DeckError('not-found', `There is no release ${id}`)
      const release = /** @type {any} */ (event.detail)
      if (!existsSync(release.entry)) throw new DeckError('release-gone', `release ${id} is not there any more: ${release.entry} does not exist`)
      return { ...release, isKnown: true }
    },

    /** @param {string} current @returns {string} the one that was deployed with success before @throws {DeckError} not-found */
    before (current) {
      const event = history.page({ type: 'rollout.succeeded', limit: 1000 }).items.find(({ detail }) => detail?.kind !== 'restart' && detail?.from !== detail?.to && detail?.to === current)
      if (!event) throw new DeckError('not-found', `No release was deployed before ${current}`)
      return /** @type {any} */ (event.detail).from
    }
  }
}
