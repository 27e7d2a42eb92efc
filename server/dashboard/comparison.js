import { formatCommit } from '../../public/format.js'
import { changedParts } from '../config/changed-parts.js'
import { crashLabels, headlineOf } from './crash-kinds.js'
import { firstLine } from './readable-text.js'

/**
 * Two releases side by side, for an operator who is about to switch between them.
 * @typedef {import('../deck.js').ReleaseView} ReleaseView
 * @typedef {Pick<import('../deck.js').Deck, 'releases' | 'crashes'>} Deck
 */

const SHOWN_CRASHES = 3
const TITLE_CHARS = 120

/**
 * @param {{ deck: Deck, from: string, to: string }} parts
 * @throws {import('../errors.js').DeckError} not-found
 */
export async function comparisonOf ({ deck, from, to }) {
  const [before, after] = [deck.releases.get(from), deck.releases.get(to)]
  const { changed, commits } = await deck.releases.compare(from, to)
  return {
    from: before,
    to: after,
    isSame: from === to,
    changes: changesOf({ changed }),
    facts: factsOf(before, after),
    commits
  }
}

/**
 * @param {{ changed?: import('../config/changed-parts.js').Changed | null }} release
 * @returns {{ from: string, parts: string[], variables: string[] } | null} null: no earlier release is known
 */
export function changesOf ({ changed }) {
  if (!changed) return null
  return { from: changed.from, parts: changedParts(changed), variables: changed.environment }
}

/**
 * Lists the crash groups of a release, the newest first.
 * @param {Pick<import('../deck.js').Deck, 'crashes'>} deck @param {string} release
 * @returns {{ id: number, title: string, labels: string[], lastSeenAt: string, isOpen: boolean }[] | null} null: the database cannot tell
 */
export function crashesOn ({ crashes }, release) {
  try {
    return crashes.page({ release, limit: SHOWN_CRASHES }).items.map((group) => {
      const { name, message } = headlineOf(group)
      return {
        id: group.id,
        title: firstLine([name, message].filter(Boolean).join(': '), TITLE_CHARS),
        labels: crashLabels(group),
        lastSeenAt: group.lastSeenAt,
        isOpen: group.state === 'open'
      }
    })
  } catch {
    return null
  }
}

/** @param {ReleaseView} before @param {ReleaseView} after @returns {{ name: string, before: string, after: string }[]} only what differs */
function factsOf (before, after) {
  /** @type {[string, (release: ReleaseView) => string | null | undefined][]} */
  const facts = [
    ['Commit', ({ git }) => git && `${formatCommit(git.commit)}${git.isDirty ? ' + changed files' : ''}`],
    ['Branch', ({ git }) => git?.branch],
    ['Package', ({ package: about }) => about && [about.name, about.version].filter(Boolean).join(' ')],
    ['Lock file', ({ lockFile }) => lockFile?.slice(0, 17)],
    ['Folder', ({ source, path }) => source ?? path],
    ['Mode', ({ mode }) => mode]
  ]
  return facts
    .map(([name, valueOf]) => ({ name, before: valueOf(before) || '–', after: valueOf(after) || '–' }))
    .filter((fact) => fact.before !== fact.after)
}
