import { RELEASE_ID } from '../config/release-id.js'
import { DeckError } from '../errors.js'
import { oneLine } from '../system/one-line.js'
import { table } from './output.js'

const PAGE_LIMIT = 100

/**
 * The releases that are kept, or one of them with what has changed since the one before.
 * @param {import('./commands.js').Context} context @param {string} [id]
 */
export async function releases ({ api, options, print }, id) {
  if (id !== undefined && !RELEASE_ID.test(id)) throw new DeckError('usage', `releases: expected an id such as r12, received ${JSON.stringify(id)}`)
  if (id !== undefined) {
    const release = await api.get(`/releases/${id}`)
    return print(options.json ? JSON.stringify(release, null, 2) : releaseText(release))
  }
  const page = await api.get(`/releases?limit=${PAGE_LIMIT}`)
  print(options.json ? JSON.stringify(page, null, 2) : releasesText(page.items))
}

/** @param {any[]} items newest first */
function releasesText (items) {
  return table(['RELEASE', 'OUTCOME', 'IN USE', 'CREATED', 'BY', 'VERSION', 'COMMIT', 'MODE', 'NOTE'], items.map((release) => [
    release.id, release.setback?.outcome === 'taken-back' ? 'taken-back' : release.outcome, release.inUse ? 'yes' : null, release.createdAt, release.createdBy, release.package?.version, commitOf(release), release.mode, release.note
  ]))
}

/** @param {any} release */
function releaseText (release) {
  const { id, outcome, setback, inUse, deployedAt, rollout, mode, path, entry, cwd, source, createdAt, createdBy, note, package: about, lockFile, environment, changed } = release
  /** @type {[string, string][]} */
  const facts = [
    ['release', `${id}${inUse ? ' (in use)' : ''}`],
    ['outcome', outcome === null ? '-' : `${outcome} at ${deployedAt}${rollout === null ? '' : `, rollout ${rollout}`}`],
    ['since then', setback ? `${setback.outcome} by ${setback.actor} at ${setback.at}, rollout ${setback.rollout}${setback.reason ? `: ${setback.reason}` : ''}` : '-'],
    ['created', `${createdAt} by ${createdBy}${note ? `: ${note}` : ''}`],
    ['mode', source ? `${mode} of ${source}` : mode],
    ['path', path],
    ['entry', entry],
    ['cwd', cwd],
    ['package', about ? [about.name, about.version].filter(Boolean).join(' ') : '-'],
    ['commit', commitOf(release, 40) ?? '-'],
    ['lock file', lockFile ?? '-'],
    ['variables', environment?.names.join(', ') || '-'],
    ['changed', changed === null ? '-' : `since ${changed.from}: ${changesOf(changed).join(', ') || 'no known change'}`]
  ]
  return facts.map(([name, value]) => `${name.padEnd(11)}${oneLine(value)}`).join('\n')
}

/** @param {any} release @param {number} [length] */
function commitOf ({ git }, length = 10) {
  if (!git?.commit) return null
  return [git.commit.slice(0, length), git.branch && length > 10 ? `on ${git.branch}` : null, git.isDirty ? '(changed)' : null].filter(Boolean).join(' ')
}

/** @param {Record<string, any>} changed @returns {string[]} */
function changesOf ({ environment, ...rest }) {
  const names = { commit: 'commit', package: 'package.json', lockFile: 'lock file', arguments: 'arguments', mode: 'mode', folder: 'folder', entry: 'entry' }
  const parts = Object.entries(names).filter(([key]) => rest[key]).map(([, name]) => name)
  return environment.length > 0 ? [...parts, `variables ${environment.join(', ')}`] : parts
}
