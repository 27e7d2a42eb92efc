import { changedParts } from '../config/changed-parts.ts'
import { RELEASE_ID } from '../config/release-id.ts'
import { listCommand, tableText } from '../cli/actions.ts'
import { linesOf, type Columns } from '../cli/output.ts'
import type { KeptRelease } from '../api/shapes.ts'

const PAGE_LIMIT = 100

const RELEASES: Columns<KeptRelease> = { RELEASE: 'id',
  OUTCOME: ({ outcome, setback }) => setback?.outcome === 'rolled-back' ? 'rolled-back' : outcome,
  'IN USE': ({ inUse }) => inUse ? 'yes' : null, CREATED: 'createdAt', BY: 'createdBy',
  VERSION: (release) => release.package?.version, COMMIT: (release) => commitOf(release), MODE: 'mode', NOTE: 'note' }

/** Prints the releases that are kept, or one of them with its changes since the one before. */
export const releasesCommand = listCommand<KeptRelease, KeptRelease>({ path: '/releases', limit: PAGE_LIMIT,
  textOf: tableText(RELEASES), one: { form: RELEASE_ID, expected: 'an id such as r12', textOf: releaseText } })

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
