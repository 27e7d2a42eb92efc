import { changedParts } from '../config/changed-parts.ts'
import { RELEASE_ID } from '../config/release-id.ts'
import { formatTable, linesOf } from './output.ts'
import { misuse } from './usage.ts'
import type { KeptRelease } from '../api/releases.ts'
import type { Context } from './commands.ts'

const PAGE_LIMIT = 100

/** Prints the releases that are kept, or one of them with its changes since the one before. */
export async function releasesCommand ({ api, answer }: Context, id?: string) {
  if (id !== undefined && !RELEASE_ID.test(id)) throw misuse('releases', 'an id such as r12', JSON.stringify(id))
  if (id !== undefined) {
    const release = await api.get<KeptRelease>(`/releases/${id}`)
    return answer(release, () => releaseText(release))
  }
  const page = await api.get<{ items: KeptRelease[] }>(`/releases?limit=${PAGE_LIMIT}`)
  answer(page, () => releasesText(page.items))
}

/** `items`: newest first */
function releasesText (items: KeptRelease[]) {
  return formatTable(['RELEASE', 'OUTCOME', 'IN USE', 'CREATED', 'BY', 'VERSION', 'COMMIT', 'MODE', 'NOTE'],
    items.map((
      release
    ) => [release.id, release.setback?.outcome === 'rolled-back' ? 'rolled-back' : release.outcome,
      release.inUse ? 'yes' : null, release.createdAt, release.createdBy, release.package?.version, commitOf(release),
      release.mode, release.note]
    ))
}

function releaseText (release: KeptRelease) {
  const { id, inUse, mode, path, entry, cwd, source, createdAt, createdBy, note, package: about, lockFile, environment,
    changed } = release
  const facts = [['release', `${id}${inUse ? ' (in use)' : ''}`], ['outcome', outcomeText(release)], ['since then',
    setbackText(release)], ['created', `${createdAt} by ${createdBy}${note ? `: ${note}` : ''}`], ['mode',
    source ? `${mode} of ${source}` : mode], ['path', path], ['entry', entry], ['cwd', cwd], ['package',
    about ? [about.name, about.version].filter(Boolean).join(' ') : '-'], ['commit', commitOf(release, 40) ?? '-'], [
    'lock file',
    lockFile ?? '-'
  ], ['variables', environment?.names.join(', ') || '-'], ['changed',
    changed ? `since ${changed.from}: ${changesOf(changed).join(', ') || 'no known change'}` : '-']]
  return linesOf(facts, 11)
}

function outcomeText ({ outcome, deployedAt, rollout }: KeptRelease) {
  return outcome === null ? '-' : `${outcome} at ${deployedAt}${rollout === null ? '' : `, rollout ${rollout}`}`
}

function setbackText ({ setback }: KeptRelease) {
  if (!setback) return '-'
  return `${setback.outcome} by ${setback.actor} at ${setback.at}, rollout ${setback.rollout}${
    setback.reason ? `: ${setback.reason}` : ''
  }`
}

function commitOf ({ git }: KeptRelease, length: number = 10) {
  if (!git?.commit) return null
  return [git.commit.slice(0, length), git.branch && length > 10 ? `on ${git.branch}` : null,
    git.isDirty ? '(changed)' : null].filter(Boolean).join(' ')
}

function changesOf (changed: NonNullable<KeptRelease['changed']>): string[] {
  const { environment } = changed
  return [...changedParts(changed), ...(environment.length > 0 ? [`variables ${environment.join(', ')}`] : [])]
}
