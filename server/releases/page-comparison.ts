import { formatCommit } from '../../public/format.ts'
import { changedParts, type Changed } from '../config/changed-parts.ts'
import { crashLabels, headlineOf } from '../crashes/page-kinds.ts'
import { firstLine } from '../dashboard/readable-text.ts'
import type { ReleaseView } from '../deck.ts'

/** Two releases side by side, for an operator who is about to switch between them. */
type Deck = Pick<import('../deck.ts').Deck, 'releases' | 'crashes'>

const SHOWN_CRASHES = 3
const TITLE_CHARS = 120

/** @throws {import('../errors.ts').DeckError} not-found */
export async function comparisonOf ({ deck, from, to }: { deck: Deck, from: string, to: string }) {
  const [before, after] = [deck.releases.get(from), deck.releases.get(to)]
  const { changed, commits } = await deck.releases.compare(from, to)
  return { from: before, to: after, isSame: from === to, changes: changesOf({ changed }), facts: factsOf(before, after),
    commits }
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
  try {
    return crashes.page({ release, limit: SHOWN_CRASHES }).items.map((group) => {
      const { name, message } = headlineOf(group)
      return { id: group.id, title: firstLine([name, message].filter(Boolean).join(': '), TITLE_CHARS),
        labels: crashLabels(group), lastSeenAt: group.lastSeenAt, isOpen: group.state === 'open' }
    })
  } catch {
    return null
  }
}

/** @returns only what differs */
function factsOf (before: ReleaseView, after: ReleaseView): { name: string, before: string, after: string }[] {
  const facts: [string, (release: ReleaseView) => string | null | undefined][] = [['Commit',
    ({ git }) => git && `${formatCommit(git.commit)}${git.isDirty ? ' + changed files' : ''}`], ['Branch',
    ({ git }) => git?.branch], ['Package',
    ({ package: about }) => about && [about.name, about.version].filter(Boolean).join(' ')], ['Lock file',
    ({ lockFile }) => lockFile?.slice(0, 17)], ['Folder', ({ source, path }) => source ?? path], ['Mode',
    ({ mode }) => mode]]
  return facts.map(([name, valueOf]) => ({ name, before: valueOf(before) || '–', after: valueOf(after) || '–' }))
    .filter((fact) => fact.before !== fact.after)
}
