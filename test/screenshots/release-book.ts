import { createHash } from 'node:crypto'
import type { KeptRelease } from '../../server/api/shapes.ts'
import type { DeckEvent } from '../../server/events/stream.ts'
import type { RolloutView } from '../../server/lifecycle/rollout/record.ts'
import type { Admin } from './life.ts'

/** The releases of the shop, and what became of each. */
/** `before`: commits that come with it, newest first */
export type Commit = { subject: string, author: string, environment?: string[], before?: string[], files: string[] }
type View = { release: { id: string }, workers: { release: string }[] }

const HOME = '/srv/shop'
export const FIRST: Commit = Object.freeze({ subject: 'Open the shop', author: 'Ada', files: ['app.js'] })

export function createReleaseBook (deck: Admin['deck'], now: () => number) {
  const { items } = deck.releases
  const [blank] = items
  const commits: Commit[] = []
  deck.releases.before = (id) => goodBefore(id)?.id ?? 'r1'
  deck.releases.compare = async (from, to, { withFiles = false } = {}) => {
    const [low, high] = [numberOf(from), numberOf(to)].sort((a, b) => a - b)
    const between = commits.map(toCommit).slice(low, high).toReversed()
    const files = [...new Set(commits.slice(low, high).flatMap((commit) => commit.files))].sort()
    const none = { items: [], hasMore: false }
    const some = { items: between.flat(), hasMore: false }
    return { changed: { ...get(to).changed, from },
      commits: low === numberOf(from) ? { added: some, removed: none } : { added: none, removed: some },
      files: withFiles
        ? { added: 0, changed: files.length, removed: 0,
          items: files.map((name) => ({ name, change: 'changed' as const })) }
        : null }
  }

  return {
    add,
    get,
    /** The first one, with which the shop opens. */
    open ({ at, ...commit }: Commit & { at: number }) {
      items.splice(0)
      const release = add(commit, { actor: 'system', note: null, at })
      return settle(release.id, { outcome: 'succeeded', servedAt: release.createdAt, deployedAt: release.createdAt })
    },
    note,
    use
  }

  function add (commit: Commit, { actor, note, at = now() }: { actor: string, note: string | null, at?: number }) {
    const n = commits.push(commit)
    const createdAt = new Date(at).toISOString()
    const release: typeof blank = { ...blank, mode: 'folder', source: HOME, path: placeOf(`r${n}`),
      entry: `${placeOf(`r${n}`)}/app.js`, cwd: placeOf(`r${n}`), id: `r${n}`, createdAt, createdBy: actor, note,
      package: { name: 'shop', version: `1.4.${n}` }, environment: { digest: 'sha256:00', names: ['DATABASE_URL'] },
      git: { commit: hashOf(commit), branch: 'main', isDirty: false, author: commit.author, subject: commit.subject },
      changed: { ...blank.changed, from: deck.snapshot().release.id, environment: commit.environment ?? [],
        commit: true, package: true }, outcome: null, rollout: null, deployedAt: null, servedAt: null, setback: null,
      isLastGood: false, inUse: false }
    items.unshift(
      n === 1 ? { ...release, changed: { ...release.changed, from: 'r1', commit: false, package: false } } : release
    )
    return release
  }

  /** As the master keeps it at the end of a rollout. */
  function note ({ type, at, rollout, detail }: DeckEvent) {
    const outcome =
      { 'rollout.succeeded': 'succeeded' as const, 'rollout.failed': 'failed' as const,
        'rollout.rolled-back': 'rolled-back' as const }[type]
    if (!outcome || !detail) return
    const { kind, from, to, actor, note: why, reason } = detail as unknown as RolloutView
    if (!to || kind === 'restart') return
    const isGood = outcome === 'succeeded'
    if (kind === 'deploy') settle(to, { outcome, rollout, deployedAt: at })
    if (isGood) settle(to, { servedAt: at })
    if (isGood && kind === 'rollback')
      settle(from, { setback: { outcome: 'rolled-back', at, rollout: Number(rollout), actor, reason: why ?? reason } })
  }

  function use ({ release: { id }, workers }: View) {
    const lastGood = goodBefore(id)
    for (const item of items) {
      item.inUse = item.id === id || workers.some(({ release }) => release === item.id)
      item.isLastGood = item === lastGood
    }
  }

  function goodBefore (id: string) {
    return items.find((each) => numberOf(each.id) < numberOf(id) && each.servedAt !== null && each.setback === null)
  }

  function settle (id: string, changes: Partial<KeptRelease>) {
    return Object.assign(get(id), changes)
  }

  function get (id: string) {
    const found = items.find((each) => each.id === id)
    if (!found) throw new Error(`release ${id} is not in the book`)
    return found
  }

  function toCommit (commit: Commit, index: number) {
    const release = get(`r${index + 1}`)
    return [commit.subject, ...commit.before ?? []].map((subject) => ({ commit: hashOf({ subject }),
      at: release.createdAt, author: commit.author, subject })
    )
  }
}

/** Where its copy is. */
export function placeOf (release: string) {
  return `${HOME}/.clusterdeck/releases/${release}`
}

/** Of its commit, as git prints it. */
export function hashOf ({ subject }: Pick<Commit, 'subject'>) {
  return createHash('sha1').update(subject).digest('hex')
}

function numberOf (id: string) {
  return Number(id.slice(1))
}
