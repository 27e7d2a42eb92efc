import { changedParts } from '../config/changed-parts.js'
import { RELEASE_ID } from '../config/release-id.js'
import { DeckError } from '../errors.js'
import { oneLine } from '../system/one-line.js'
import { formatTable } from './output.js'

/** @typedef {import('../api/releases.js').KeptRelease} KeptRelease */

const PAGE_LIMIT = 100

/**
 * Prints the releases that are kept, or one of them with its changes since the one before.
 * @param {import('./commands.js').Context} context @param {string} [id]
 */
export async function releasesCommand ({ api, answer }, id) {
  if (id !== undefined && !RELEASE_ID.test(id)) throw new DeckError('usage', `releases: expected an id such as r12, received ${JSON.stringify(id)}`)
  if (id !== undefined) {
    const release = await api.get(`/releases/${id}`)
    return answer(release, () => releaseText(release))
  }
  const page = await api.get(`/releases?limit=${PAGE_LIMIT}`)
  answer(page, () => releasesText(page.items))
}

/** @param {KeptRelease[]} items newest first */
function releasesText (items) {
  return formatTable(['RELEASE', 'OUTCOME', 'IN USE', 'CREATED', 'BY', 'VERSION', 'COMMIT', 'MODE', 'NOTE'], items.map((release) => [
    release.id,
    release.setback?.outcome === 'rolled-back' ? 'rolled-back' : release.outcome,
    release.inUse ? 'yes' : null,
    release.createdAt,
    release.createdBy,
    release.package?.version,
    commitOf(release),
    release.mode,
    release.note
  ]))
}

/** @param {KeptRelease} release */
function releaseText (release) {
  const { id, inUse, mode, path, entry, cwd, source, createdAt, createdBy, note, package: about, lockFile, environment, changed } = release
  /** @type {[name: string, value: string | undefined][]} */
  const facts = [
    ['release', `${id}${inUse ? ' (in use)' : ''}`],
    ['outcome', outcomeText(release)],
    ['since then', setbackText(release)],
    ['created', `${createdAt} by ${createdBy}${note ? `: ${note}` : ''}`],
    ['mode', source ? `${mode} of ${source}` : mode],
    ['path', path],
    ['entry', entry],
    ['cwd', cwd],
    ['package', about ? [about.name, about.version].filter(Boolean).join(' ') : '-'],
    ['commit', commitOf(release, 40) ?? '-'],
    ['lock file', lockFile ?? '-'],
    ['variables', environment?.names.join(', ') || '-'],
    ['changed', changed ? `since ${changed.from}: ${changesOf(changed).join(', ') || 'no known change'}` : '-']
  ]
  return facts.map(([name, value]) => `${name.padEnd(11)}${oneLine(String(value))}`).join('\n')
}

/** @param {KeptRelease} release */
function outcomeText ({ outcome, deployedAt, rollout }) {
  return outcome === null ? '-' : `${outcome} at ${deployedAt}${rollout === null ? '' : `, rollout ${rollout}`}`
}

/** @param {KeptRelease} release */
function setbackText ({ setback }) {
  if (!setback) return '-'
  return `${setback.outcome} by ${setback.actor} at ${setback.at}, rollout ${setback.rollout}${setback.reason ? `: ${setback.reason}` : ''}`
}

/** @param {KeptRelease} release @param {number} [length] */
function commitOf ({ git }, length = 10) {
  if (!git?.commit) return null
  return [git.commit.slice(0, length), git.branch && length > 10 ? `on ${git.branch}` : null, git.isDirty ? '(changed)' : null].filter(Boolean).join(' ')
}

/** @param {NonNullable<KeptRelease['changed']>} changed @returns {string[]} */
function changesOf (changed) {
  const { environment } = changed
  return [...changedParts(changed), ...(environment.length > 0 ? [`variables ${environment.join(', ')}`] : [])]
}
