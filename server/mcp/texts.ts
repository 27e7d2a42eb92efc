import { formatBytes, formatCommit, formatDuration, formatExactDuration, formatLatency, formatPercent, formatRate,
  formatUnsure } from '../../public/format.ts'
import { changedParts } from '../config/changed-parts.ts'
import { oneLine } from '../system/one-line.ts'
import { levelsText } from './vitals-story.ts'
import type { Told } from './tools.ts'
import type { AppView } from '../host/api-apps.ts'
import type { Report } from '../doctor/api.ts'
import type { OpenRequests, Status, Worker } from '../api/cluster.ts'
import type { KeptRelease, Setting } from '../api/shapes.ts'
import type { CrashGroup, CrashGroupInFull } from '../crashes/api.ts'
import type { Diagnostics } from '../diagnostics/api.ts'
import type { Event } from '../events/api.ts'
import { progressOf, progressText } from '../fleet/progress.ts'
import type { Fleet } from '../fleet/api-answers.ts'
import type { HotFunctions } from '../diagnostics/api-hot-functions.ts'
import type { Entry } from '../logs/api-lines.ts'
import type { Comparison } from '../releases/api-comparison.ts'
import type { Rollout, RolloutInFull } from '../rollouts/api.ts'
import type { RouteList, RouteRow } from '../vitals/api-routes.ts'
import type { Series } from '../vitals/api.ts'
import type { ProfileChanges, ProfileFunctions } from '../diagnostics/api-profiles.ts'

/**
 * Answers for a model: the line that matters first, then a few more; the data are short, as each word of an answer is
 * read and paid for. What the app has written is quoted, and cut.
 */
type Page<Item> = { items: Item[], next: string | null }

const MAX_LINE_CHARS = 400
const MAX_STDERR_LINES = 15
const MAX_ROWS = 30
/** Events of each worker in a rollout, and of people who read: they explain no change of the figures. */
const ROUTINE = new Set(['access.used', 'diagnostics.started', 'diagnostics.finished', 'rollout.step', 'worker.forked',
  'worker.online', 'worker.listening', 'worker.ready', 'worker.draining'])
const REPLACING = new Set(['deploy', 'rollback', 'restart'])
const MAX_NEAR = 12

export function statusStory (status: Status, now: number): Told {
  const { app, health, release, rollout, workers, notices, upgrade, history, master, dispatch } = status
  return {
    text: lines([`${app.name}: ${health.text}. ${release.id} runs${
      release.git
        ? ` (commit ${formatCommit(release.git.commit)}${release.git.subject ? ` ${quoted(release.git.subject)}` : ''})`
        : ''
    }, made ${release.createdAt}.`, health.hint, ...health.reasons.map(({ slots, text, crashGroup, isNewInRelease }) =>
      `- ${slots.length > 0 ? `slot ${slots.join(', ')}: ` : ''}${clip(text)}${
        crashGroup ? ` (crash group ${crashGroup}: see "crash")` : ''
      }${isNewInRelease ? '; new in this release' : ''}`
    ),
      rollout &&
      `Rollout ${rollout.id} runs: ${rollout.kind} from ${rollout.from} to ${rollout.to}, ${rollout.state}, ${rollout.progress.replaced} of ${rollout.progress.total} slots${
        rollout.reason ? `: ${clip(rollout.reason)}` : ''
      }.`, upgrade && 'The master is being replaced.',
      history?.problem && `The history cannot be written: ${history.problem}`,
      ...notices.map(({ id, at, message, endedAt }) =>
        `Notice ${id} (${at}${endedAt ? `, over since ${endedAt}` : ''}): ${clip(message)}`
      ), 'Workers:', ...bullets(workers, (worker) =>
        workerLine(worker, now), { max: MAX_ROWS })]),
    data: { app: app.name, entry: app.entry, addresses: app.addresses, tone: health.tone, problems: health.problems,
      release: release.id, rollout: rollout?.id ?? null, dispatch, version: master.version, node: master.nodeVersion }
  }
}

export function routesStory ({ items, since, release, compare }: RouteList): Told {
  const slowest = [...items].sort((one, other) => other.p99Ms - one.p99Ms)
  return {
    text: lines([
      `${items.length} routes${release ? ` of ${release}` : ''} since ${
        since ?? 'this master began'
      }, slowest p99 first:`,
      ...bullets(slowest,
        (row) =>
          `${clip(row.route)}: ${figuresText(row)}${row.before ? ` (${compare}: ${figuresText(row.before)})` : ''}`, {
        max: MAX_ROWS
      })
    ])
  }
}

function figuresText ({ requests, errors, p50Ms, p99Ms }: NonNullable<RouteRow['before']>) {
  return `${requests} requests, ${formatPercent(100 * errors / requests)} errors, p50 ${formatLatency(p50Ms)}, p99 ${
    formatLatency(p99Ms)
  }`
}

function workerLine ({ id, slot, state, release, readyAt, restarts, crashLooping, retryAt, vitals, finished }: Worker,
  now: number)
{
  return joined([id === null ? `slot ${slot}: no worker` : `worker ${id} (slot ${slot})`, state, release,
    readyAt && `ready for ${formatDuration(now - Date.parse(readyAt))}`, restarts > 0 && `restarted ${restarts} times`,
    crashLooping && 'CRASH LOOP', retryAt && `next try ${retryAt}`, finished && `ended with code ${finished.code}`,
    vitals &&
    `${formatRate(vitals.requestsPerSecond)} requests/s, p99 ${formatLatency(vitals.latencyP99Ms)}, loop blocked ≤ ${
      formatLatency(vitals.loopDelayMaxMs)
    }, CPU ${formatPercent(vitals.cpuPercent)}, ${formatBytes(vitals.rssBytes)}`])
}

export function vitalsStory (
  { series, changes, near: all, columns, rows }: { series: Series, changes: string[], near: Event[], columns: string[],
    rows: unknown[][] }
): Told {
  const near = all.filter(({ type, cause }) =>
    !ROUTINE.has(type) && !(type === 'worker.exited' && REPLACING.has(String(cause)))
  )
  if (series.time.length === 0) return { text: `No vitals from ${series.since} to ${series.until}.` }
  return {
    text: lines([changes.length === 0
      ? `Nothing moved to another level from ${series.since} to ${series.until}.`
      : `Moved to another level between ${series.since} and ${series.until}:`, ...bullets(changes, String),
      near.length > 0 && 'Events from two minutes before the first of these to one minute after it, newest first:',
      ...bullets(near, eventLine, { max: MAX_NEAR, more: ': see "events"' }),
      changes.length > 0 && near.length === 0 && 'The history has no event near the first of these.',
      series.next !== null && `The range was too long for one answer: it goes on at ${series.next}.`]),
    data: { medians: { columns, rows } }
  }
}

export function eventsStory ({ items, next }: Page<Event>): Told {
  return {
    text: lines([
      items.length === 0
        ? 'No events match.'
        : `${items.length} events, newest first${next ? '; more by cursor' : ''}:`,
      ...items.flatMap((event) => [`- ${eventLine(event)}`, ...holderLines(event)])
    ]),
    data: { next }
  }
}

/** What held the memory of a worker, the most first. */
function holderLines ({ type, release, detail }: Event): string[] {
  if (type !== 'memory.examined' || !Array.isArray(detail?.holders)) return []
  const since = detail.sinceRelease && detail.sinceRelease !== release
    ? [`    the first of these has held most since ${detail.sinceRelease}`]
    : []
  return [
    ...detail.holders.map(({ name, className, count, bytes, bytesPer1000Requests, file }) =>
      `    ${formatBytes(bytes)}: ${count} × ${clip(className)} at ${clip(name)}${
        bytesPer1000Requests === null ? '' : `, ${formatBytes(bytesPer1000Requests)} per 1,000 requests`
      }${file ? `, ${clip(file)}` : ''}`
    ),
    ...since
  ]
}

function eventLine ({ id, at, type, cause, worker, slot, release, actor, message }: Event) {
  const about = joined([cause, worker !== null && `worker ${worker}`, slot !== null && `slot ${slot}`, release,
    actor && `by ${actor}`])
  return `${at} ${type}${about ? ` (${about})` : ''}${message ? `: ${clip(message)}` : ''} [event ${id}]`
}

export function crashesStory ({ items, next }: Page<CrashGroup>): Told {
  return {
    text: lines([items.length === 0 ? 'No crashes match.' : `${items.length} crash groups, the last to crash first:`,
      ...bullets(items, (group) =>
        `${groupText(group)}, last ${group.lastSeenAt}, since ${group.firstRelease ?? 'unknown'}, ${group.state}${
          group.isNewInRelease ? ', NEW in the running release' : ''
        }${group.hasReturned ? ', returned' : ''}`), next && 'There are more: use a filter.'])
  }
}

function groupText ({ id, culprit, count, ...group }: CrashGroup) {
  return `group ${id}: ${headline(group)}${culprit ? `, in ${culprit}` : ''}; ${count} crashes`
}

export function headline ({ errorName, kind, message }: Pick<CrashGroup, 'errorName' | 'kind' | 'message'>) {
  return clip(`${errorName ?? kind}${message ? `: ${message}` : ''}`)
}

export function crashStory (group: CrashGroupInFull): Told {
  const { latest } = group
  const own = latest?.frames.find(({ isInApp }) => isInApp)
  return {
    text: lines([`${headline(group)}${own ? `, at ${own.file}:${own.line} in ${own.function ?? '(anonymous)'}` : ''}.`,
      `Crash group ${group.id} (${group.state}): ${group.count} crashes from ${group.firstSeenAt} to ${group.lastSeenAt}; first in ${
        group.firstRelease ?? 'unknown'
      }, last in ${group.lastRelease ?? 'unknown'}${group.isNewInRelease ? ', NEW in the running release' : ''}.`,
      ...(latest ? latestLines(latest) : ['None of its crashes is kept any more.'])]),
    data: { releases: group.releases,
      latest: latest &&
        { id: latest.id, at: latest.at, cause: latest.cause, code: latest.code, signal: latest.signal,
          slot: latest.slot, worker: latest.worker, release: latest.release, uptimeMs: latest.uptimeMs } }
  }
}

function latestLines (
  { at, cause, worker, uptimeMs, frames, causes, requests, stderr, memory }: NonNullable<CrashGroupInFull['latest']>
): unknown[] {
  return [
    `The newest: ${at}, worker ${worker}, cause ${cause}, after ${formatDuration(uptimeMs)}${
      memory?.rssBytes ? `, with ${formatBytes(memory.rssBytes)}` : ''
    }.`,
    frames.length > 0 && 'Stack, innermost first:',
    ...frames.slice(0, 12).flatMap((
      frame
    ) => [
      `  ${frame.isInApp ? '>' : ' '} ${frame.function ?? '(anonymous)'} ${frame.file ?? ''}${
        frame.line ? `:${frame.line}` : ''
      }`,
      ...sourceText(frame.source, frame.line)
    ]),
    ...causes.map(({ errorName, errorMessage }) => `Caused by ${clip(`${errorName}: ${errorMessage}`)}`),
    requests.length > 0 &&
    `Requests that were not answered: ${
      requests.slice(0, 10).map(({ method, path, ageMs, isHanging }) =>
        `${method} ${clip(path)} (${isHanging ? 'it hung in this one, ' : ''}${formatExactDuration(ageMs)})`
      ).join(', ')
    }`,
    stderr.length > 0 && 'Its last lines on stderr:',
    ...stderr.slice(-MAX_STDERR_LINES).map((line) => `  | ${clip(line)}`)
  ]
}

function sourceText (source: { number: number, text: string }[] | null | undefined, line: number | null): string[] {
  return (source ?? []).map(({ number, text }) =>
    `      ${number === line ? '→' : ' '} ${String(number).padStart(5)} ${clip(text)}`
  )
}

export function logsStory ({ items, next }: Page<Entry>): Told {
  return {
    text: lines([items.length === 0
      ? 'No lines match.'
      : `${items.length} lines, oldest first${
        next ? '; older ones by cursor' : ''
      }. What follows is what the app has written:`, ...items.map(({ slot, stream, text, arrivedAt }) =>
        `${arrivedAt ?? '-'} ${slot}${stream === 'stderr' ? ' ERR' : ''} | ${clip(text)}`
      )]),
    data: { first: items[0]?.place ?? null, last: items.at(-1)?.place ?? null, next }
  }
}

export function releasesStory ({ items }: { items: KeptRelease[] }): Told {
  return {
    text: lines([items.length === 0 ? 'There are no releases.' : 'Releases, newest first:',
      ...bullets(items, releaseLine)])
  }
}

function releaseLine (
  { id, git, package: pack, createdAt, createdBy, note, outcome, servedAt, setback, isLastGood, inUse, changedInPlace }:
    KeptRelease
) {
  return joined([id,
    git &&
    `commit ${formatCommit(git.commit)}${git.subject ? ` ${quoted(git.subject)}` : ''}${
      git.author ? ` by ${clip(git.author)}` : ''
    }`, pack?.version && `version ${pack.version}`, `made ${createdAt}${createdBy ? ` by ${createdBy}` : ''}`,
    servedAt && `serves since ${servedAt}`, outcome ?? 'is being deployed',
    setback && `${setback.outcome} at ${setback.at}${setback.reason ? `: ${clip(setback.reason)}` : ''}`,
    inUse && 'IN USE', isLastGood && 'a rollback goes here', changedInPlace && clip(changedInPlace.message),
    note && `note ${quoted(note)}`])
}

/** `crashes`: that are new in the newer one */
export function comparisonStory ({ from, to, changed, commits, files, figures }: Comparison,
  crashes: CrashGroup[]): Told
{
  const parts = [...changedParts(changed), ...changed.environment.map((name) => `variable ${name}`)]
  return {
    text: lines([
      `${to.id} against ${from.id}: ${
        figures.from && figures.to ? levelsText(figures.from, figures.to) : 'there are no figures of both'
      } (medians of up to 15 minutes: the last of ${from.id}, the first of ${to.id}).`,
      figures.unsure.length > 0 && `That is ${formatUnsure(figures.unsure)}.`,
      `- ${releaseLine(from)}`,
      `- ${releaseLine(to)}`,
      parts.length > 0 && `Changed with ${to.id}: ${parts.map(clip).join(', ')}.`,
      files
        ? `Files: ${files.changed} changed, ${files.added} added, ${files.removed} removed by ${to.id}${
          files.items.length > 0
            ? `: ${
              files.items.map(({ name, change }) => `${clip(name)} (${change})`).join(', ')
            }`
            : ''
        }.`
        : 'Which files differ is not known, or told to operators alone.',
      ...(commits?.added.items ?? []).map(({ commit, author, subject, at }) =>
        `Commit ${formatCommit(commit)} ${quoted(subject)} by ${clip(author)}, ${at}`
      ),
      crashes.length === 0 ? `No crash is new in ${to.id}.` : `New in ${to.id}:`,
      ...bullets(crashes, (group) => `crash ${groupText(group)}`)
    ]),
    data: figures
  }
}

export function rolloutsStory ({ items }: { items: Rollout[] }): Told {
  return {
    text: lines([items.length === 0 ? 'There was no rollout yet.' : 'Rollouts, newest first:',
      ...bullets(items, rolloutLine)])
  }
}

export function rolloutLine (
  { id, kind, state, from, to, actor, client, note, startedAt, finishedAt, progress, reason, crashes }: Rollout
) {
  return `rollout ${id}: ${kind} from ${from} to ${to ?? '?'}, ${state}, by ${actor}${
    client ? ` (${client})` : ''
  }, ${startedAt}${
    finishedAt
      ? `, took ${formatExactDuration(Date.parse(finishedAt) - Date.parse(startedAt))}`
      : `, ${progress.replaced} of ${progress.total} slots`
  }${crashes > 0 ? `, ${crashes} crashes` : ''}${reason ? `: ${clip(reason)}` : ''}${
    note ? `, note ${quoted(note)}` : ''
  }`
}

export function rolloutStory (rollout: RolloutInFull): Told {
  return {
    text: lines([rolloutLine(rollout), ...rollout.warnings.map((warning) => `Warning: ${clip(warning)}`),
      ...rollout.verdicts.slice(-3).map(({ at, message, passed }) =>
        `Verdict ${at} (${passed === null ? 'not sure' : passed ? 'passed' : 'FAILED'}): ${clip(message)}`
      ), rollout.hook?.output && `Output of ${rollout.hook.name}: ${clip(rollout.hook.output)}`,
      ...(rollout.timeline ?? []).slice(-MAX_ROWS).map(({ at, type, actor, message }) =>
        `- ${at} ${type}${actor ? ` by ${actor}` : ''}${message ? `: ${clip(message)}` : ''}`
      )]),
    data: { state: rollout.state, done: rollout.done, progress: rollout.progress,
      steps: rollout.steps.slice(0, MAX_ROWS).map(({ slot, state, oldWorker, newWorker }) => ({ slot, state, oldWorker,
        newWorker })
      ) }
  }
}

export function requestsStory (
  workers: { worker: number | null, items: OpenRequests['items'], total: number | null, problem?: string }[]
): Told {
  const all = workers.flatMap(({ worker, items }) => items.map((item) => ({ worker, ...item }))).sort((a, b) =>
    b.ageMs - a.ageMs
  )
  const total = workers.reduce((sum, each) => sum + (each.total ?? 0), 0)
  return {
    text: lines([total === 0 ? 'No request is open.' : `${total} requests are open, the oldest first:`,
      ...all.slice(0, MAX_ROWS).map(({ worker, method, path, ageMs }) =>
        `- ${method} ${clip(path)}, open for ${formatExactDuration(ageMs)}, worker ${worker}`
      ), ...workers.filter(({ problem }) => problem).map(({ worker, problem }) => `Worker ${worker}: ${problem}`)])
  }
}

export function settingsStory (items: Setting[], q?: string): Told {
  const word = q?.toLowerCase()
  const shown = items.filter(({ name, description, source }) =>
    word === undefined ? source !== 'default' : `${name} ${description}`.toLowerCase().includes(word)
  )
  return {
    text: lines([shown.length === 0
      ? (q === undefined ? 'All options are at their defaults.' : 'No option matches.')
      : `${shown.length} options${q === undefined ? ' that are not at their defaults' : ''}:`,
      ...shown.slice(0, 60).map((
        { name, value, isSecret, source, default: usual, description, expected, takesEffect }
      ) =>
        `- ${name} = ${isSecret ? '(secret)' : clip(JSON.stringify(value) ?? 'null')} (${source}${
          source === 'default' ? '' : `; default ${clip(JSON.stringify(usual) ?? 'none')}`
        }; takes effect: ${takesEffect})${q === undefined ? '' : `: ${description}; ${expected}`}`
      )])
  }
}

export function checksStory ({ items, problems }: Report): Told {
  const bad = items.filter(({ severity }) => severity !== 'ok')
  return {
    text: lines([problems === 0 ? 'No check has found a problem.' : `${problems} checks have found a problem:`,
      ...bad.flatMap((
        { id, severity, title, why, mend }
      ) => [`- ${severity}: ${title} (${id}). ${why}`, ...mend.map(({ how, text, where }) =>
        `    mend by ${how}: ${text}${where ? ` (${where})` : ''}`
      )])])
  }
}

export function appsStory ({ items }: { items: AppView[] }): Told {
  return {
    text: lines([
      items.length === 0 ? 'This host has no apps.' : `${items.length} apps. The other tools take the name as "app".`,
      ...bullets(items, ({ name, state, reason, health, ...app }) =>
        joined([name, state, reason && clip(reason), health?.text,
          ...runningParts({ ...app, latencyP99Ms: app.p99Ms })]))
    ])
  }
}

/** What of an app as it runs is told, here or on another host. */
function runningParts (
  { workers, release, requestsPerSecond, latencyP99Ms, openCrashes }: { workers: AppView['workers'],
    release: string | null, requestsPerSecond: number | null, latencyP99Ms: number | null, openCrashes: number | null }
) {
  return [workers && `${workers.ready} of ${workers.desired} workers`, release,
    requestsPerSecond !== null && `${formatRate(requestsPerSecond)} requests/s`,
    latencyP99Ms !== null && `p99 ${formatLatency(latencyP99Ms)}`,
    Number(openCrashes) > 0 && `${openCrashes} open crash groups`]
}

export function fleetStory ({ members, rollout }: Fleet): Told {
  return {
    text: lines([`${members.length} members have the app:`,
      ...bullets(members, ({ member, isOwn, isSilent, state, health, mark, accept, vitals, ...app }) =>
        joined([`${member}${isOwn ? ' (this one)' : ''}`, isSilent ? 'SILENT, as it last was:' : state,
          clip(health.text), mark && mark.label, ...runningParts({ ...app, ...vitals }),
          !isOwn && accept === 'nothing' && 'lets nobody ask']), { max: MAX_ROWS }),
      rollout &&
      `The newest rollout of the fleet, ${rollout.id}: ${rollout.kind}, ${rollout.state}, ${
        progressText(rollout.state, progressOf(rollout))
      }${rollout.reason ? `: ${clip(rollout.reason)}` : ''}.`])
  }
}

export function profileStory ({ id, worker, slot, release, durationMs }: Diagnostics,
  { busyMs, idleMs, functions, calls }: HotFunctions): Told
{
  const own = functions.find(({ owner }) => owner === 'app')
  return {
    text: lines([own
      ? `${
        shareText(own.selfMs, busyMs)
      } of the busy time of worker ${worker} (slot ${slot}, ${release}) was in ${own.function} itself, ${
        placeOf(own)
      }; with what it calls ${shareText(own.totalMs, busyMs)}.`
      : `Worker ${worker} (slot ${slot}, ${release}) spent its busy time outside of the app's own functions.`,
      `It was busy for ${formatExactDuration(busyMs)} and idle for ${formatExactDuration(idleMs)} of ${
        formatExactDuration(durationMs)
      }.`, ...busiestText({ busyMs, functions, calls })]),
    data: { profile: id, worker, release, busyMs, idleMs }
  }
}

export function pastProfileStory ({ isOn, slices, since, until, busyMs, idleMs, functions, calls }: ProfileFunctions) {
  if (slices === 0)
    return {
      text: isOn
        ? 'No profile of that time is kept.'
        : 'Continuous profiling is off (diagnostics.profiling), and no profile is kept: "profile" records one now.',
      data: { isOn, slices }
    }
  return {
    text: lines([
      `${slices} profiles of 5 s, from ${since} to ${until}: the workers were busy for ${
        formatExactDuration(busyMs)
      } and idle for ${formatExactDuration(idleMs)}.`,
      ...busiestText({ busyMs, functions, calls })
    ]),
    data: { isOn, slices, since, until, busyMs, idleMs }
  }
}

export function profileChangesStory ({ before, after, functions }: ProfileChanges) {
  const percent = (each: number) => `${each.toFixed(1)} %`
  const busy = ({ busyPercent, slices }: ProfileChanges['before']) =>
    slices === 0 ? 'no profile is kept' : `busy for ${percent(busyPercent)} of the time, ${slices} profiles`
  return {
    text: lines([`Before: ${busy(before)}. After: ${busy(after)}.`, functions.length === 0
      ? 'No function has changed by more than 0.1 % of the time of a worker.'
      : 'Share of the time of a worker, with what Node.js did for the function, before > after:',
      ...functions.slice(0, 15).map((each) =>
        clip(
          `- ${percent(each.beforePercent)} > ${percent(each.afterPercent)} ${each.function} ${each.place}${
            each.owner === 'app' ? '' : ` [${each.owner}]`
          }`
        )
      )]),
    data: { before, after }
  }
}

function busiestText ({ busyMs, functions, calls }: Pick<HotFunctions, 'busyMs' | 'functions' | 'calls'>): unknown[] {
  return ['Busiest functions, by their own time:',
    ...functions.filter(({ selfMs }) => selfMs >= busyMs / 200).slice(0, 12).flatMap((
      each
    ) => [
      `- ${shareText(each.selfMs, busyMs)} (with calls ${shareText(each.totalMs, busyMs)}) ${each.function} ${
        placeOf(each)
      }${each.owner === 'app' ? '' : ` [${each.owner}]`}`,
      ...sourceText(each.source, each.line)
    ]),
    calls.length > 0 &&
    `The busiest way in: ${
      calls.filter(({ place }) => place !== '' && !place.startsWith('node:')).map(({ function: name, place }) =>
        `${name} ${place}`
      ).join(' > ')
    }`]
}

function shareText (ms: number, busyMs: number) {
  return busyMs === 0 ? '0 %' : `${Math.round(100 * ms / busyMs)} %`
}

/** @returns with the busiest line, where it is known */
function placeOf ({ place, line }: { place: string, line: number | null }): string {
  return line === null ? place : `${place.replace(/:\d+$/, '')}:${line}`
}

/** A line for each of the first of them. `more`: where the others are told */
function bullets<Item> (items: readonly Item[], lineOf: (item: Item) => string,
  { max = Infinity, more = '' }: { max?: number, more?: string } = {}): (string | false)[]
{
  return [...items.slice(0, max).map((item) => `- ${lineOf(item)}`),
    items.length > max && `- and ${items.length - max} more${more}`]
}

/** @returns those that say something, a line each: what the app has written cannot begin another one */
export function lines (parts: unknown[]): string {
  return parts.filter((part) => typeof part === 'string' && part !== '').map((part) => oneLine(String(part)).trimEnd())
    .join('\n')
}

/** Leaves out what says nothing. */
function joined (parts: unknown[]) {
  return parts.filter(Boolean).join(', ')
}

/** Shortens text of the app, or of people. */
export function clip (text: unknown) {
  const line = oneLine(String(text)).trimEnd()
  return line.length > MAX_LINE_CHARS ? `${line.slice(0, MAX_LINE_CHARS)}…` : line
}

function quoted (text: string) {
  return `“${clip(text)}”`
}
