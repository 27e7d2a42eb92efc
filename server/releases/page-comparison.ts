import { attempt } from '../errors.ts'
import { formatBytes, formatCommit, formatLatency, formatPercent, formatRate,
  formatUnsure } from '../../public/format.ts'
import { changedParts, type Changed } from '../config/changed-parts.ts'
import { compareReleases, type Comparison } from './api-comparison.ts'
import { crashLabels, titleOf } from '../crashes/page-kinds.ts'
import type { Powers } from '../dashboard/powers.ts'
import type { KeptRelease } from '../api/shapes.ts'

/** Two releases side by side, for an operator who is about to switch between them. */
type Deck = Pick<import('../deck.ts').Deck, 'snapshot' | 'releases' | 'vitals'>

type Figures = NonNullable<Comparison['figures']['from']>

const perRequest = ({ requestsPerSecond: all, requests5xxPerSecond: failed }: Figures) =>
  all && failed !== null ? 100 * failed / all : null
const isMuchMore = (before: number, after: number) => after > before * 1.5

const FIGURES: readonly { name: string, valueOf: (figures: Figures) => number | null,
  format: (value: number | null) => string, isWorse?: (before: number, after: number) => boolean }[] = Object.freeze([{
    name: '5xx',
    valueOf: perRequest,
    format: formatPercent,
    isWorse: (before, after) => after > before + 1
  }, { name: 'p99', valueOf: ({ latencyP99Ms }) => latencyP99Ms, format: formatLatency,
    isWorse: (before, after) => isMuchMore(before, after) && after > before + 10 }, { name: 'p50',
    valueOf: ({ latencyP50Ms }) => latencyP50Ms, format: formatLatency,
    isWorse: (before, after) => isMuchMore(before, after) && after > before + 5 }, { name: 'Requests/s',
    valueOf: ({ requestsPerSecond }) => requestsPerSecond, format: formatRate }, { name: 'CPU',
    valueOf: ({ cpuPercent }) => cpuPercent, format: formatPercent,
    isWorse: (before, after) => isMuchMore(before, after) && after > before + 10 }, { name: 'Memory',
    valueOf: ({ rssBytes }) => rssBytes, format: formatBytes, isWorse: (before, after) => isMuchMore(before, after) }])

const SHOWN_CRASHES = 3
const TITLE_CHARS = 120

/** @throws {import('../errors.ts').DeckError} not-found */
export async function comparisonOf (deck: Deck,
  { now, can, ...ids }: { from: string, to: string, now: number, can?: Powers })
{
  const { from, to, changed, commits, files, figures } = await compareReleases(deck, ids, { now,
    seesFiles: can?.operate === true })
  return { from, to, isSame: from.id === to.id, changes: changesOf({ changed }), facts: factsOf(from, to), commits,
    files: files && { ...files, text: filesText(files) }, figures: figureRows(figures),
    unsure: formatUnsure(figures.unsure) }
}

/** How the workers of both were, a row for each figure that is known of one of them. */
function figureRows (
  { from, to, unsure }: Comparison['figures']
): { name: string, before: string, after: string, isWorse: boolean }[] {
  return FIGURES.flatMap(({ name, valueOf, format, isWorse }) => {
    const [before, after] = [from && valueOf(from), to && valueOf(to)]
    if (before === null && after === null) return []
    return [{ name, before: format(before), after: format(after),
      isWorse: unsure.length === 0 && before !== null && after !== null && isWorse?.(before, after) === true }]
  })
}

function filesText ({ added, changed, removed, items }: NonNullable<Comparison['files']>): string {
  const counts = [[changed, 'changed'], [added, 'added'], [removed, 'removed']].filter(([number]) => Number(number) > 0)
  const rest = added + changed + removed - items.length
  return `${counts.map(([number, what]) => `${number} ${what}`).join(', ')}${rest > 0 ? `; ${rest} not listed` : ''}`
}

/** Null: no earlier release is known */
export function changesOf (
  { changed }: { changed?: Changed | null }
): { from: string, parts: string[], variables: string[] } | null {
  if (!changed) return null
  return { from: changed.from, parts: changedParts(changed), variables: changed.environment }
}

/** Lists the crash groups of a release, the newest first. Returns null: the database cannot tell. */
export function crashesOn ({ crashes }: Pick<import('../deck.ts').Deck, 'crashes'>, release: string): { id: number,
  title: string, labels: string[], lastSeenAt: string, isOpen: boolean }[] | null
{
  return attempt(() =>
    crashes.page({ release, limit: SHOWN_CRASHES }).items.map((group) => ({ id: group.id,
      title: titleOf(group, TITLE_CHARS), labels: crashLabels(group), lastSeenAt: group.lastSeenAt,
      isOpen: group.state === 'open' })
    )
  )
}

function factsOf (before: KeptRelease, after: KeptRelease): { name: string, before: string, after: string }[] {
  const facts: [string, (release: KeptRelease) => string | null | undefined][] = [['Commit',
    ({ git }) => git && `${formatCommit(git.commit)}${git.isDirty ? ' + changed files' : ''}`], ['Branch',
    ({ git }) => git?.branch], ['Package',
    ({ package: about }) => about && [about.name, about.version].filter(Boolean).join(' ')], ['Lock file',
    ({ lockFile }) => lockFile?.slice(0, 17)], ['Folder', ({ source, path }) => source ?? path], ['Mode',
    ({ mode }) => mode]]
  return facts.map(([name, valueOf]) => ({ name, before: valueOf(before) || '–', after: valueOf(after) || '–' }))
    .filter((fact) => fact.before !== fact.after)
}
