import { PAGE_QUERY } from '../api/filters.ts'
import { parseFields } from '../api/input.ts'
import { lastRollout } from './api.ts'
import { blockedReason, runsProgram, toRollout } from '../dashboard/overview.ts'
import { readOr } from '../dashboard/read-or.ts'
import { releaseRows, rolledBackBy } from '../releases/page-list.ts'
import { buildsIn, toBuildRow } from './page-builds.ts'
import type { Status } from '../deck.ts'
import type { KeptRun } from '../jobs/api.ts'
import type { RolloutView } from '../lifecycle/rollout/record.ts'

/** The page about deploys: one list of what was rolled out or is built, and of the releases that never were. */
type Deck = Pick<import('../deck.ts').Deck, 'snapshot' | 'releases' | 'crashes' | 'jobs'>
type History = Pick<import('../../db/history.ts').History, 'rollouts' | 'page'>
type Release = ReturnType<typeof releaseRows>[number]
type Rollout = ReturnType<typeof toRollout>

const PAGE_SIZE = 25
const KNOWN = 100

export function deploysModel (
  { deck, history, params, now }: { deck: Deck, history: History, params: URLSearchParams, now: () => number }
) {
  const snapshot = deck.snapshot()
  const { cursor } = parseFields(PAGE_QUERY, params).values
  const isFirstPage = cursor === undefined
  const { items, next } = readOr(() => history.rollouts({ limit: PAGE_SIZE, cursor }), { items: [], next: null })
  const releases = readOr(() => deck.releases.list({ limit: KNOWN }).items, null)
  // The output of a build that has succeeded is long and seldom asked for.
  const builds = readOr(
    () =>
      buildsIn(deck.jobs).map((run) => run.state === 'succeeded' ? { ...run, output: null } : deck.jobs.run(run.id)),
    []
  )
  return { now: now(), snapshot, blocked: blockedReason(snapshot), lastRollout: lastRollout(deck, history), isFirstPage,
    rollout: snapshot.rollout ? toRollout(snapshot.rollout, { history, isProgram: runsProgram(snapshot) }) : null,
    isUnreadable: releases === null,
    deploys: deployRows({ rollouts: items, releases: releaseRows(releases ?? [], snapshot), builds, isFirstPage,
      snapshot }),
    links: { next: next === null ? null : `/deploys?cursor=${next}`, newest: isFirstPage ? null : '/deploys' } }
}

/**
 * What was rolled out, newest first, each with its release where that is kept; on the first page the releases too that
 * no rollout has brought, and the builds that no rollout has followed.
 */
export function deployRows ({ rollouts, releases, builds = [], isFirstPage, snapshot }: {
  /** newest first */
  rollouts: RolloutView[],
  releases: Release[],
  builds?: KeptRun[],
  isFirstPage: boolean,
  snapshot: Pick<Status, 'rollout'>
}) {
  // That of a rollout that runs has a card of its own, and comes into the list with its end, or once it is held.
  const { rollout: now } = snapshot
  const over = [...isFirstPage && now?.state === 'held' ? [now] : [], ...rollouts.filter(({ id }) => id !== now?.id)]
    .map((rollout) => toRollout(rollout))
  const shown: Set<string> = new Set()
  let isOvertaken = !isFirstPage
  const deployed = over.map((rollout) => {
    const release = releases.find(({ id }) => id === (rollout.to ?? rollout.from)) ?? null
    const build = builds.find((each) => each.rollout === rollout.id) ?? null
    const row = toRow({ rollout, release, build, isOvertaken, isFirst: release !== null && !shown.has(release.id) })
    if (release) shown.add(release.id)
    isOvertaken ||= rollout.state === 'succeeded'
    return row
  })
  const others = isFirstPage
    ? releases.filter(({ id, rollout }) => !shown.has(id) && rollout === null && id !== now?.to)
    : []
  const lastSuccess = over.find(({ state }) => state === 'succeeded')?.startedAt ?? ''
  const unfollowed = isFirstPage ? builds.filter(({ state }) => state !== 'succeeded') : []
  return [...unfollowed.map((build) => toBuildRow(build, build.startedAt < lastSuccess)),
    ...others.map((release) => toRow({ rollout: null, release, build: null, isOvertaken: false, isFirst: true })),
    ...deployed].sort((a, b) => Date.parse(b.at) - Date.parse(a.at))
}

/** `isOvertaken`: a later rollout has succeeded; `isFirst`: no newer row is about this release */
function toRow (
  { rollout, release, build, isOvertaken, isFirst }: { rollout: Rollout | null, release: Release | null,
    build: KeptRun | null, isOvertaken: boolean, isFirst: boolean }
) {
  const verdict = rollout?.verdicts?.at(-1) ?? null
  const id = release?.id ?? rollout?.to ?? null
  const isLast = rollout !== null && release?.rollout === rollout.id
  const setback = isLast && release.setback?.outcome === 'rolled-back' ? release.setback : null
  const { label, icon, tone } = setback
    ? { label: rolledBackBy(setback.actor), icon: 'undo-2', tone: 'idle' }
    : rollout?.outcome ?? { label: rollout?.state ?? '', icon: 'hourglass', tone: 'bad' }
  return {
    key: rollout ? `rollout-${rollout.id}` : `release-${id}`,
    id,
    rollout,
    release: isFirst ? release : null,
    about: release,
    result: rollout && { label, icon, reason: (setback ?? rollout).reason },
    warning: isFirst && !setback ? release?.warning : null,
    marks: isFirst ? release?.marks.filter((mark) => !label.toLowerCase().includes(mark.label)) ?? [] : [],
    at: rollout?.finishedAt ?? rollout?.startedAt ?? String(release?.deployedAt ?? release?.createdAt),
    // What is past is no alarm.
    tone: rollout === null || (isOvertaken && rollout.state !== 'succeeded') ? 'idle' : tone,
    verdict,
    build,
    figures: verdict && verdict.canary.requests > 0 ? verdict : null
  }
}
