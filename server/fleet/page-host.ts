import { codeText } from './api-builds.ts'
import { hostFleetFor } from './api-host.ts'
import { progressText } from './progress.ts'
import { formatDuration } from '../../public/format.ts'
import { count } from '../words/health.ts'
import { lastKnownText } from '../words/last-known.ts'
import { isSick as isSickTone, SICK_FIRST } from '../host/page-apps.ts'
import { isSilent as isSilentHost, totalsOf } from './page-members.ts'
import { ROLLOUT_STATES } from './page-rollout-parts.ts'
import type { HostFleet } from './api-answers.ts'
import type { FleetHost, FleetHostApp, FleetHostMember } from './api-host.ts'
import type { Apps } from '../host/api-apps.ts'
import type { Tone } from '../events/kinds.ts'
import type { Powers } from '../dashboard/powers.ts'

/** The page of a host about its fleet: hosts by apps, the sick first. The page of an app has more about that one. */
type Asked = { apps: FleetHost & Pick<Apps, 'states'>, now: () => number, can?: Powers }

/** So many hosts and apps that are not well are named at the top. */
const MOST_NAMED = 3

export function hostFleetModel ({ apps, now, can }: Asked) {
  const fleet = apps.fleet()
  const canonicalUrl = '/fleet'
  if (!fleet)
    return { now: now(), isAlone: !apps.joinsFleet, canonicalUrl,
      health: { tone: 'idle', text: apps.joinsFleet ? 'Joining the fleet' : 'Fleet', hint: '', reasons: [] } }
  const shown = hostFleetFor(fleet.status(), fleet, can ?? {})
  const isAway = !shown.nats.isConnected
  const open = new Set(
    apps.states().filter(({ state }) => ['starting', 'running', 'stopping'].includes(state)).map(({ name }) => name)
  )
  const names = [...new Set(shown.members.flatMap((host) => host.apps.map(({ app }) => app)))].sort(
    sickFirst(shown.members)
  )
  const hosts = shown.members.map((host) => toHostRow(host, { names, open, isAway })).sort((one, other) =>
    one.urgency - other.urgency || (one.member < other.member ? -1 : 1)
  )
  return { now: now(), isAlone: false, health: healthOf(hosts, shown), nameProblem: shown.problem,
    columns: names.map((app) => ({ app, url: open.has(app) ? `/apps/${app}/fleet` : null,
      rollout: rolloutView(shown.rollouts.find((each) => each.app === app), open.has(app)) })
    ), hosts, totals: totalsOf(shown.members, ({ apps }) => apps, hosts.map(({ tone }) => tone)), canonicalUrl }
}

/** Of many apps only the first are in sight. */
function sickFirst (members: FleetHostMember[]): (one: string, other: string) => number {
  const sick = new Set(
    members.filter((host) => !isSilentHost(host)).flatMap((host) =>
      host.apps.filter(({ health }) => isSickTone(health)).map(({ app }) => app)
    )
  )
  return (one, other) => Number(sick.has(other)) - Number(sick.has(one)) || (one < other ? -1 : 1)
}

function toHostRow (host: FleetHostMember,
  { names, open, isAway }: { names: string[], open: Set<string>, isAway: boolean })
{
  const isSilent = isSilentHost(host)
  const cells = names.map((name) =>
    toCell(host, host.apps.find(({ app }) => app === name), { name, isSilent, isOpen: open.has(name) })
  )
  return { member: host.member, host: host.host, url: host.isOwn ? null : host.url, isOwn: host.isOwn, isSilent, isAway,
    ageMs: host.ageMs, lastKnown: isSilent ? lastKnownText(host.apps) : null,
    tone: (isSilent ? isAway ? 'idle' : 'bad' : 'ok') as Tone, cells,
    urgency: isSilent && !isAway ? -1 : Math.min(...cells.map(({ urgency }) => urgency), SICK_FIRST.length) }
}

function toCell (host: FleetHostMember, app: FleetHostApp | undefined,
  { name, isSilent, isOpen }: { name: string, isSilent: boolean, isOpen: boolean })
{
  if (!app) return { app: name, isThere: false as const, urgency: SICK_FIRST.length, tone: 'idle' }
  const { health, release, code, workers, openCrashes, mark, rollout } = app
  const isSick = !isSilent && isSickTone(health)
  return {
    app: name,
    isThere: true as const,
    urgency: isSilent
      ? SICK_FIRST.length
      : Math.min(SICK_FIRST.indexOf(health.tone), mark?.isBehind ? SICK_FIRST.indexOf('warn') : SICK_FIRST.length),
    tone: isSilent ? 'idle' : health.tone,
    text: health.text,
    isSick,
    release,
    code: codeText(code),
    // The mark tells of those that have the same version of other commits.
    shortCode: code?.version ?? code?.commit ?? null,
    workers,
    isShort: !isSilent && workers.ready < workers.desired,
    isStopped: app.state === 'stopped',
    openCrashes: openCrashes ?? 0,
    crashesUrl: isOpen ? `/apps/${name}/crashes?member=${host.member}` : null,
    mark,
    change: !isSilent && rollout ? `${rollout.kind} ${rollout.replaced} of ${rollout.total}` : null,
    // This host has the page of a member only for the apps that run here.
    url: isOpen ? `/apps/${name}/fleet/members/${host.member}` : host.isOwn ? null : app.url
  }
}

function rolloutView (rollout: HostFleet['rollouts'][number] | undefined, isOpen: boolean) {
  if (!rollout || !isOpen) return null
  const { label, tone, isOver } = ROLLOUT_STATES[rollout.state]
  // Nobody has to know of a rollout that has ended well.
  if (rollout.state === 'succeeded') return null
  return { url: `/apps/${rollout.app}/fleet/rollouts/${rollout.id}`,
    text: isOver || rollout.state === 'held'
      ? `${rollout.kind} ${label}`
      : `${rollout.kind} ${label}, ${progressText(rollout.state, rollout.progress)}`, tone }
}

function healthOf (hosts: ReturnType<typeof toHostRow>[],
  { nats, name, member }: Pick<HostFleet, 'nats' | 'name' | 'member'>)
{
  const about = `Fleet ${name}, this host is ${member}`
  if (!nats.isConnected) {
    return { tone: 'warn', text: 'This host is cut off from the fleet',
      hint: `${about}. ${
        nats.problem ?? ''
      }. The apps of this host keep running. What others report below is the last known, and no new turn starts.`,
      reasons: [] }
  }
  const silent = hosts.filter(({ isSilent }) => isSilent)
  const cells = hosts.flatMap((host) =>
    host.cells.filter((cell) => cell.isThere).map((cell) => ({ ...cell, member: host.member, isSilent: host.isSilent }))
  )
  const sick = cells.filter(({ isSick }) => isSick)
  const behind = cells.filter(({ mark, isSick, isSilent }) => mark?.isBehind && !isSick && !isSilent)
  const parts = [silent.length > 0 && `${count(silent.length, 'host')} silent`,
    sick.length > 0 && `${count(sick.length, 'app')} not well`, behind.length > 0 && `${behind.length} behind`].filter(
      Boolean
    )
  const cellReason = (cell: typeof cells[number], text: string) => ({ slots: [],
    url: cell.url ?? `#host-${cell.member}`, text })
  const named = [
    ...silent.map(({ member, ageMs, lastKnown }) => ({ slots: [], url: `#host-${member}`,
      text: `${member} has been silent for ${formatDuration(ageMs)}. ${lastKnown}` })
    ),
    ...sick.map((cell) => cellReason(cell, `${cell.app} on ${cell.member}: ${cell.text}`)),
    ...behind.map((cell) => cellReason(cell, `${cell.app} on ${cell.member} is behind`))
  ]
  const more = named.length - MOST_NAMED
  return {
    tone: silent.length > 0 || sick.some(({ tone }) => tone === 'bad') ? 'bad' : parts.length > 0 ? 'warn' : 'ok',
    text: parts.length === 0
      ? `${hosts.length === 1 ? 'The only host is' : `All ${hosts.length} hosts are`} well`
      : parts.join(', '),
    hint: [...(more > 0 ? [`${more} more below`] : []), about].join('. '),
    reasons: named.slice(0, MOST_NAMED)
  }
}
