import { DeckError } from '../errors.ts'
import { figuresOf } from '../words/figures.ts'
import { count, countOpen } from '../words/health.ts'
import type { FleetRollout } from './document.ts'
import type { History } from '../../db/history.ts'
import type { snapshotOf } from '../lifecycle/snapshot.ts'
import type { Health } from '../words/health.ts'
import type { AppStatus } from './member-status.ts'
import type { EventStream } from '../events/stream.ts'
import type { CrashService } from '../crashes/crashes.ts'
import type { Notices } from '../events/notices.ts'
import type { Packages } from './packages.ts'
import type { DeckAdapter } from './member-runtime.ts'
import type { Result } from './member.ts'

/**
 * Runs the rollouts of this deck that a rollout of the fleet asks for; the history of the deck names who started the
 * fleet's.
 */
type Snapshot = ReturnType<typeof snapshotOf>
/** What a fleet needs of the deck that it runs in, see server/deck.ts. */
export type OwnStatus = Snapshot & { app: { name: string }, workers: Parameters<typeof figuresOf>[0],
  history: { problem: string | null, since: string | null } }
export type OwnDeck = { snapshot: () => OwnStatus,
  health: (status: OwnStatus) => { tone: Health['tone'], text: string }, dispatch:
    & ((command: { type: 'abort', rollout: number, actor: string }) => unknown)
    & ((
      command: { type: 'rollout', kind: 'restart' | 'rollback', actor: string, note: string, release?: string }
    ) => { id: number }),
  deploy: (wanted: { actor: string, note: string, path?: string, mode?: 'folder' }) => Promise<{ id: number }>,
  events: EventStream, history: History, crashes: CrashService, notices: Pick<Notices, 'list'>,
  releases: {
    list: (query: { limit: number, cursor?: string }) => { items: { path: string }[], next: string | null }
  } }

const COMMIT_CHARS = 10
const MAX_VERSION_CHARS = 100
const MAX_PROBLEM_CHARS = 500

export function createDeckAdapter (deck: Pick<OwnDeck, 'snapshot' | 'dispatch' | 'deploy'>,
  accept: 'nothing' | 'read' | 'operate', packages: Pick<Packages, 'fetch'>): DeckAdapter
{
  return { async begin (document) {
    checkAccepted()
    const { kind, source: { path, digest, release }, actor } = document
    const command = { actor, note: noteOf(document) }
    // What was pushed runs from a folder of its own, with what all releases share.
    if (kind === 'deploy')
      return (await deck.deploy({ ...command,
        ...(digest === undefined ? { path } : { path: await packages.fetch(digest), mode: 'folder' }) })).id
    return startRollout(kind === 'restart' ? { ...command, kind } : { ...command, kind, release })
  }, async rollBack (release, document) {
    checkAccepted()
    return startRollout({ kind: 'rollback', release: release ?? undefined, actor: document.actor,
      note: `${noteOf(document)}: rolled back` })
  }, abort (rollout, { actor }) {
    deck.dispatch({ type: 'abort', rollout, actor })
  }, release: () => deck.snapshot().release?.id ?? null }

  /**
   * The document is not trusted with it.
   * @throws {DeckError} forbidden
   */
  function checkAccepted () {
    if (accept !== 'operate')
      throw new DeckError('forbidden',
        `fleet.accept: expected "operate" to roll out for the fleet, received "${accept}"`)
  }

  function startRollout (command: { kind: 'restart' | 'rollback', actor: string, note: string, release?: string }) {
    return deck.dispatch({ type: 'rollout', ...command }).id
  }
}

function noteOf ({ id, note }: FleetRollout) {
  return note === null ? `rollout ${id} of the fleet` : `${note} (rollout ${id} of the fleet)`
}

/** `event`: its last one */
export function resultOf ({ type, release, message }: { type: string, release: string | null, message: string | null },
  { way, isAborted }: { way: 'forward' | 'back', isAborted: boolean }): Result
{
  if (type === 'rollout.succeeded')
    return { state: way === 'forward' ? 'succeeded' : 'reverted', to: release, reason: null }
  if (way === 'forward' && isAborted && type === 'rollout.rolled-back')
    return { state: 'reverted', to: null, reason: null }
  return { state: 'failed', to: null, reason: message ?? 'it has failed' }
}

/** What this host tells others of the deck itself. */
export function describeDeck (
  deck: Pick<OwnDeck, 'snapshot' | 'health' | 'notices' | 'crashes'>
): Omit<AppStatus, 'app' | 'state' | 'turnOf' | 'seen' | 'url'> {
  const snapshot = deck.snapshot()
  const { release, readyWorkers, desiredWorkers, rollout, workers, history: { problem, since } } = snapshot
  const { requestsPerSecond, p99Ms } = figuresOf(workers)
  const { tone, text } = deck.health(snapshot)
  const notices = deck.notices.list().length
  return { release: release?.id ?? null, code: codeOf(release),
    workers: { ready: readyWorkers, desired: desiredWorkers },
    health: { tone, text: notices === 0 ? text : `${text}, ${count(notices, 'notice')}` },
    vitals: { requestsPerSecond, latencyP99Ms: p99Ms }, openCrashes: countOpen(deck.crashes),
    unwritten: problem === null ? null : { problem: problem.slice(0, MAX_PROBLEM_CHARS), since },
    rollout: rollout &&
      { id: rollout.id, kind: rollout.kind, state: rollout.state, replaced: rollout.progress.replaced,
        total: rollout.progress.total } }
}

function codeOf (release: OwnStatus['release'] | null): AppStatus['code'] {
  const { package: itsPackage, git } = release ?? {}
  return { version: itsPackage?.version?.slice(0, MAX_VERSION_CHARS) ?? null,
    commit: git ? `${git.commit.slice(0, COMMIT_CHARS)}${git.isDirty ? '+' : ''}` : null }
}
