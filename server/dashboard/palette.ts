import { formatCommit } from '../../public/format.ts'
import { PLACES, type Place } from '../../public/places.ts'
import { lastRollout } from '../rollouts/api.ts'
import { rolloutTitle } from '../words/health.ts'
import { manualPages } from '../manual.ts'
import { titleOf } from '../crashes/page-kinds.ts'
import { blockedReason } from './overview.ts'
import { readOr } from './read-or.ts'
import { firstLine } from './readable-text.ts'
import { workerUrlOf } from './worker-url.ts'
import type { Powers } from './powers.ts'
import type { History } from '../../db/history.ts'
import type { Status, WorkerRow } from '../deck.ts'
import type { KeptRelease } from '../api/shapes.ts'

/** The command palette finds every page that the viewer may open, and every action that they may do. */
type Deck = Pick<import('../deck.ts').Deck,
  'snapshot' | 'releases' | 'crashes' | 'others' | 'fleet' | 'jobs' | 'metricHistory'>
/** a dialog of the layout */
type Opening = { dialog: string, fill?: Record<string, string | number>, subject?: string }
/**
 * `hint`: is searched, too; `homeHref`: a path of the whole port; `switchTo`: the id of another deck; `presses`: a
 * button of the top bar; `blocked`: why the action is not possible now
 */
export type Item = { group: string, icon: string, label: string, hint?: string, href?: string, homeHref?: string,
  opens?: Opening, switchTo?: string, presses?: string, blocked?: string | null }
/** the apps of the same host, and how they are */
export type Neighbours = (can: Powers | undefined) => { name: string, text: string }[]

const LISTED = 50
const MAX_LABEL_CHARS = 120

export function paletteModel (
  { deck, history, can, neighbours }: { deck: Deck, history: Pick<History, 'rollouts'>, can?: Powers,
    neighbours?: Neighbours }
): { items: Item[] } {
  const snapshot = deck.snapshot()
  return {
    items: [...placesOf({ deck, can }).map(toPage), ...(snapshot.rollout
      ? [{ group: 'Rollout', icon: 'rocket', label: rolloutTitle(snapshot.rollout),
        hint: `rollout ${snapshot.rollout.id}`, href: `/rollouts/${snapshot.rollout.id}` }]
      : []), ...(can?.operate ? actionsOn(snapshot, lastRollout(deck, history)) : []), ...ofTheBrowser(can), {
      group: 'This browser',
      icon: 'bell',
      label: 'Notifications …',
      hint: 'alerts for crashes',
      opens: { dialog: 'dialog-notifications' }
    },
      ...(neighbours ? [{ name: 'All apps', text: 'list, health', homeHref: '/' }, ...neighbours(can)] : []).map(
        toNeighbour
      ),
      ...(can?.switchDecks && !neighbours ? deck.others.list() : []).map(({ id, name, cwd }) => ({ group: 'Deck',
        icon: 'arrow-right', label: `Switch to ${name}`, hint: cwd, switchTo: id })
      ), ...snapshot.workers.map(toWorker), ...readOr(() =>
        deck.crashes.page({ state: 'open', limit: LISTED }).items, []).map(toCrash), ...readOr(() =>
        deck.releases.list({ limit: LISTED }).items, []).map(toRelease), ...manualItems()]
  }
}

export function placesOf ({ deck, can }: { deck: Pick<Deck, 'fleet' | 'jobs' | 'metricHistory'>, can?: Powers }) {
  const has = { administer: can?.administer, allApps: !can?.apps, fleet: Boolean(deck.fleet),
    jobs: !deck.jobs.isEmpty(), metrics: !deck.metricHistory.isEmpty() }
  return PLACES.filter(({ needs }) => !needs || has[needs])
}

const OF_THE_BROWSER: readonly Item[] = Object.freeze(
  [{ icon: 'info', label: 'Keyboard shortcuts', hint: 'keys, help', opens: { dialog: 'dialog-shortcuts' } }, {
    icon: 'sun',
    label: 'Switch the theme',
    hint: 'light, dark, as the system',
    presses: 'theme'
  }, { icon: 'hourglass', label: 'Switch the time zone', hint: 'local times, UTC', presses: 'times' }, {
    icon: 'log-out',
    label: 'Sign out',
    hint: 'log out, end the session',
    presses: 'sign-out'
  }].map((item) => ({ group: 'This browser', ...item }))
)

/** What concerns this browser alone, as the top bar has it. */
export function ofTheBrowser (can?: Powers) {
  return OF_THE_BROWSER.filter(({ presses }) => presses !== 'sign-out' || !can?.byProxy || can.byProxy.signOutUrl)
}

export function toPage ({ icon, label, hint, href }: Place): Item {
  return { group: 'Page', icon, label, hint, href }
}

export function manualItems (): Item[] {
  return manualPages().map(({ name, title, about }) => ({ group: 'Manual', icon: 'info', label: title, hint: about,
    href: `/docs/${name}` })
  )
}

function toNeighbour (
  { name, text, homeHref = `/apps/${name}/` }: { name: string, text: string, homeHref?: string }
): Item {
  return { group: 'App', icon: 'package', label: name, hint: text, homeHref }
}

/** `last`: rollout */
function actionsOn (snapshot: Status, last: number): Item[] {
  const blocked = blockedReason(snapshot)
  const group = 'Action'
  return [
    { group, icon: 'rocket', label: 'Rolling deploy …', hint: 'release the code on disk',
      opens: { dialog: 'dialog-deploy', fill: { seen: last } }, blocked },
    { group, icon: 'rotate-cw', label: 'Restart all workers …',
      opens: { dialog: 'dialog-restart', fill: { seen: last } }, blocked },
    // As on the overview, scaling is allowed during a rollout.
    { group, icon: 'scaling', label: 'Scale …', hint: `${snapshot.desiredWorkers} workers now`,
      opens: { dialog: 'dialog-scale', fill: { workers: snapshot.desiredWorkers, seen: snapshot.desiredWorkers } },
      blocked: snapshot.rollout ? null : blocked },
    { group, icon: 'message', label: 'Send a message to all workers …',
      opens: { dialog: 'dialog-message', fill: { worker: '' }, subject: 'all workers' } },
    ...snapshot.workers.filter(({ id, state }) => id !== null && state === 'ready').map(({ id, slot }) => {
      const subject = `worker ${id} in slot ${slot}`
      return { group, icon: 'rotate-cw', label: `Restart ${subject} …`,
        opens: { dialog: 'dialog-restart-worker', fill: { id: Number(id) }, subject }, blocked }
    })
  ]
}

function toWorker ({ id, slot, pid, state, crashLooping }: WorkerRow): Item {
  return { group: 'Worker', icon: 'git-fork', label: id === null ? `Slot ${slot}` : `Worker ${id} in slot ${slot}`,
    hint: [crashLooping ? 'crash-looping' : state, ...(pid ? [`pid ${pid}`] : [])].join(', '),
    href: id === null ? `/logs?slot=${slot}` : workerUrlOf(id) }
}

function toCrash (group: ReturnType<Deck['crashes']['page']>['items'][number]): Item {
  return { group: 'Open crash', icon: 'circle-alert', label: titleOf(group, MAX_LABEL_CHARS), hint: `${group.count} ×`,
    href: `/crashes/${group.id}` }
}

function toRelease ({ id, note, git, package: itsPackage }: KeptRelease): Item {
  const hint = [git?.commit && formatCommit(git.commit), itsPackage?.version, note].filter(Boolean).join(' ')
  return { group: 'Release', icon: 'package', label: `Release ${id}`, hint: firstLine(hint, MAX_LABEL_CHARS),
    href: `/releases/${id}` }
}
