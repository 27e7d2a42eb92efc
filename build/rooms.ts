import path from 'node:path'
import { parseSync } from 'rolldown/utils'

type Room = { because: string, may: string[], never?: RegExp }

const ADMIN = 'the admin side reaches the cluster through the deck alone, and the history through what it is handed'
const OF_THE_CLUSTER = /^((node:)?cluster|better-sqlite3)$/
const PACKAGES = /^(?!node:)/
const ALL = /^/
/** All rooms of server/ may import these. */
const TABLES = ['errors.ts', 'causes.ts', 'problem.ts']

/**
 * A feature has a folder with all that it is, and each part is in the room of those who ask it, by the first word of
 * its file: `crashes/page.ts` counts as `dashboard/crashes/page.ts`, `crashes/cli.ts` as `cli/crashes/cli.ts`.
 */
const ROOM_OF: Readonly<Record<string, string>> = Object.freeze({ api: 'api', page: 'dashboard', cli: 'cli' })
/** What the features share. */
const SHARED = ['admin', 'api', 'cli', 'dashboard', 'mcp']

/**
 * The rooms, and what each may import besides node, packages, its own files and TABLES. An arrow that is not here does
 * not exist; there is no circle among them. Paths are from server/; where two match a file, the later one holds. `may`:
 * beginnings of paths;
 * `never`: modules of node and packages.
 */
const ROOMS: Record<string, Room> = {
  host: {
    because: 'what a process has once meets its apps here, and nobody reaches for it but those who start a master',
    may: ['admin/', 'alerts/', 'api/host/api-apps.ts', 'app/', 'config/', 'events/', 'words/figures.ts', 'fleet/',
      'handover/', 'words/health.ts', 'keeper/', 'system/', 'systemd/', 'terminal.ts', '../db/']
  },
  backup: { because: 'a backup knows the files of a host, and no master',
    may: ['admin/tokens.ts', 'config/', 'host/records.ts', 'run-on.js', 'system/', '../db/'] },
  app: { because: 'an app has of the process what it is lent, and nothing global',
    may: ['cluster/', 'config/', 'crashes/', 'deck.ts', 'diagnostics/', 'doctor/', 'events/', 'handover/', 'jobs/',
      'lifecycle/', 'logs/', 'programs/', 'releases/', 'system/', 'telemetry/', 'vitals/', 'alerts/', '../db/',
      '../workers/free-memory.ts', '../workers/look-together.ts'], never: OF_THE_CLUSTER },
  lifecycle: {
    because:
      'the lifecycle is pure: it imports its own files, words and the tables of errors, causes and problems alone',
    may: ['words/held.ts'],
    never: ALL
  },
  cluster: { because: 'the cluster makes happen what the lifecycle decides, and knows nothing of who watches it',
    may: ['lifecycle/', 'crashes/', 'launch/preloads.ts', 'programs/', 'releases/', 'system/', 'systemd/',
      '../workers/'], never: /^(express|socket\.io|better-sqlite3)/ },
  programs: { because: 'a program is heard by its system calls, whoever wants to know',
    may: ['system/', 'systemd/unit-of.ts', '../workers/protocol.ts', '../workers/socket-file.ts'] },
  jobs: { because: 'jobs run beside the workers, and know nothing of these',
    may: ['cluster/command-', 'config/nearest.ts', 'lifecycle/duration.ts', 'system/'], never: OF_THE_CLUSTER },
  keeper: { because: 'the keeper only starts masters',
    may: ['../workers/inspector.ts', '../workers/look-together.ts', 'lifecycle/', 'system/', 'systemd/'],
    never: PACKAGES },
  handover: { because: 'a hand-over knows masters and what they remember',
    may: ['keeper/', 'system/', '../db/', '../workers/descriptor.ts'] },
  releases: { because: 'releases know nothing of the cluster that runs them',
    may: ['config/release-id.ts', 'launch/node-options.ts', 'lifecycle/', 'system/app-node.ts',
      'system/own-variables.ts', 'system/process-group.ts', 'system/semaphore.ts', 'system/without-url-secrets.ts',
      'vitals/', '../db/cursor.ts', '../public/format.ts', '../workers/'] },
  crashes: { because: 'crashes are examined without knowing who asks', may: [] },
  vitals: { because: 'vitals are kept without knowing who looks at them', may: ['config/', '../workers/'] },
  logs: { because: 'logs are kept without knowing who reads them',
    may: ['system/', '../public/log-levels.ts', '../public/log-query.ts'] },
  diagnostics: { because: 'diagnostics reach the workers through what they are handed',
    may: ['lifecycle/duration.ts', 'system/built.ts', 'system/json-file.ts', '../workers/free-memory.ts'] },
  doctor: {
    because: 'checks are pure, and go by what is found in the app\'s folder, the machine and what they are handed',
    may: ['config/', 'lifecycle/rollout/strategy.ts', 'releases/', 'system/', 'systemd/', '../public/command-text.ts',
      '../public/format.ts'],
    never: OF_THE_CLUSTER
  },
  alerts: { because: 'alerts hear the events alone',
    may: ['events/', 'config/alert-kinds.ts', 'system/closing.ts', 'system/loopback.ts',
      '../public/alert-template.ts'] },
  telemetry: { because: 'collectors are told what the rooms hand over',
    may: ['events/', 'system/', '../public/log-levels.ts', '../workers/protocol.ts'], never: OF_THE_CLUSTER },
  events: { because: 'the event stream knows nobody who publishes or subscribes', may: ['../public/format.ts'] },
  config: { because: 'the configuration knows nobody whom it configures',
    may: ['events/kinds.ts', 'events/pattern.ts', 'launch/', 'lifecycle/duration.ts', 'lifecycle/ready-line.ts',
      'system/app-node.ts', 'system/built.ts', 'system/loopback.ts', 'system/trust.ts', 'system/without-url-secrets.ts',
      'system/working-folder.ts', '../public/alert-template.ts', '../public/setting-value.ts'] },
  launch: { because: 'what would run is told by the files alone', may: [], never: PACKAGES },
  system: { because: 'the system below knows nobody above', may: ['run-on.js', '../db/lock.ts'] },
  systemd: { because: 'the service manager is told what the rooms hand over',
    may: ['run-on.js', 'system/', 'words/health.ts', '../workers/socket-file.ts'] },
  admin: { because: ADMIN,
    may: ['api/', 'config/actor-names.ts', 'dashboard/', 'words/health.ts', 'mcp/', 'system/connection-owner.ts',
      'system/heap.ts', 'telemetry/'], never: OF_THE_CLUSTER },
  mcp: { because: 'agents ask by the API alone',
    may: ['fleet/progress.ts', 'api/', 'config/', 'manual.ts', 'rollouts/preview-facts.ts', 'system/one-line.ts',
      '../public/format.ts'], never: OF_THE_CLUSTER },
  api: { because: ADMIN,
    may: ['config/', 'diagnostics/merged-profile.ts', 'doctor/finding.ts', 'events/kinds.ts', 'events/notices.ts',
      'events/topics.ts', 'fleet/document.ts', 'fleet/member-status.ts', 'fleet/progress.ts', 'vitals/columns.ts',
      '../public/log-levels.ts', '../public/log-query.ts', '../public/readable-text.ts'], never: OF_THE_CLUSTER },
  dashboard: { because: ADMIN,
    may: ['api/', 'config/', 'words/cron.ts', 'doctor/finding.ts', 'doctor/node-lines.ts', 'events/',
      'fleet/document.ts', 'fleet/progress.ts', 'words/figures.ts', 'words/held.ts', 'words/health.ts',
      'words/last-known.ts', 'manual.ts', 'rollouts/preview-facts.ts', 'system/built.ts', 'system/loopback.ts',
      'system/wait-at-most.ts', '../public/'], never: OF_THE_CLUSTER },
  fleet: { because: 'a fleet knows its deck, and nobody who asks it',
    may: ['config/actor-names.ts', 'config/app-states.ts', 'config/line-place.ts', 'config/member-name.ts',
      'config/nearest.ts', 'words/figures.ts', 'words/health.ts', 'words/last-known.ts', 'system/',
      '../public/format.ts'], never: OF_THE_CLUSTER },
  import: { because: 'what PM2 was told is read without a master',
    may: ['config/', 'launch/packages.ts', 'lifecycle/duration.ts', 'system/built.ts', 'system/home-folder.ts',
      'system/one-line.ts', 'system/own-variables.ts', 'system/process-identity.ts', 'system/process-owner.ts',
      'system/trust.ts', 'system/user.ts'], never: OF_THE_CLUSTER },
  library: { because: 'a program reaches the cluster through the deck alone',
    may: ['api/input.ts', 'api/summaries.ts', 'config/'], never: OF_THE_CLUSTER },
  cli: { because: 'the commands talk to a master through its admin API alone',
    may: ['run-on.js', 'backup/', 'keeper/link.ts', 'lifecycle/duration.ts', 'config/', 'words/cron.ts', 'doctor/',
      'events/kinds.ts', 'fleet/progress.ts', 'words/figures.ts', 'handover/host-line.ts', 'words/held.ts',
      'words/health.ts', 'import/', 'launch/', 'manual.ts', 'rollouts/preview-facts.ts', 'programs/', 'terminal.ts',
      'systemd/', 'system/archive.ts', 'system/built.ts', 'system/fallback-folder.ts', 'system/home-folder.ts',
      'system/host-folder.ts', 'system/http.ts', 'system/json-file.ts', 'system/loan.ts', 'system/make-folders.ts',
      'system/one-line.ts', 'system/own-variables.ts', 'system/place-text.ts', 'system/process-identity.ts',
      'system/process-owner.ts', 'system/process-tree.ts', 'system/recipient.ts', 'system/running-decks.ts',
      'system/shell-limits.ts', 'system/start-trace.ts', 'system/trust.ts', 'system/user.ts', 'system/wait-at-most.ts',
      'system/working-folder.ts', '../public/format.ts'], never: OF_THE_CLUSTER },
  'cli/start.ts': { because: 'the command that becomes a master loads it, and asks nothing else of it',
    may: ['cli/', 'config/', 'host/foreground.ts', 'host/master.ts', 'host/user-host.ts', 'keeper/link.ts', 'system/'],
    never: OF_THE_CLUSTER },
  '../workers': { because: 'workers run inside the app: they import node and their siblings alone', may: [],
    never: PACKAGES },
  '../workers/demo': { because: 'the demo runs inside the app: it imports node and its siblings alone', may: [],
    never: PACKAGES },
  '../workers/protocol.ts': { because: 'both sides import the protocol, so it imports nothing', may: [], never: ALL },
  '../db': { because: 'the database knows no HTTP and no cluster, only the error table', may: ['errors.ts'],
    never: /^((node:)?(https?|http2|net|cluster|child_process)$|express|socket\.io)/ }
}

/**
 * Everything of ours from the bottom up, by paths from server/; a folder stands for all that is in it. A type may be
 * known to those above it alone, so there is no circle among types either; so may a value, where the file that imports
 * it is in no room.
 */
const ORDER = ['node-needed.js', 'run-on.js', 'api/shapes.ts', 'errors.ts', 'causes.ts', 'problem.ts', 'words/cron.ts',
  'words/held.ts', '../public/format.ts', '../public/log-levels.ts', '../public/log-query.ts', '../public/log-text.ts',
  '../public/readable-text.ts', 'launch', 'events', 'lifecycle', '../db', 'system', 'config', '../workers', 'systemd',
  'programs', 'vitals', 'crashes', 'words/crash-reasons.ts', 'words/health.ts', 'logs', 'releases', 'keeper', 'cluster',
  'jobs', 'diagnostics', 'telemetry', 'alerts', 'doctor', 'words/last-known.ts', 'fleet', 'rollouts/preview.ts',
  'rollouts/preview-facts.ts', 'deck.ts', 'api', 'words/figures.ts', '../public', 'manual.ts', 'dashboard', 'mcp',
  'admin', 'handover', 'terminal.ts', 'app', 'import', 'host', 'backup', 'library', 'index.ts', 'not-loaded.ts', 'cli',
  'command-line.ts', 'compile-cache.js', 'own-code.js', 'run-here.js', 'cli.js']

/**
 * @param file from the top
 * @param text what it holds
 * @returns a sentence for each import that is not as the tables have it
 */
export function complaintsAbout (file: string, text: string): string[] {
  const from = fromServer(file)
  const own = placeOf(from)
  if (own === -1) return [`${file} has no place in ORDER`]
  const room = Object.keys(ROOMS).findLast((name) => isIn(from, name))
  return importsOf(file, text).flatMap(({ specifier, isType }) => {
    const to = specifier.startsWith('.') ? fromServer(path.posix.join(path.posix.dirname(file), specifier)) : null
    if (room && !isType)
      return isAllowed(room, to, specifier) ? [] : [`${file} may not import ${specifier}: ${ROOMS[room].because}`]
    const place = to === null ? -1 : placeOf(to)
    return place > own ? [`${file} may not know ${specifier}: ${ORDER[place]} is above ${ORDER[own]} in ORDER`] : []
  })
}

function isAllowed (room: string, to: string | null, specifier: string): boolean {
  const { may, never } = ROOMS[room]
  if (to === null) return !never?.test(specifier)
  return isIn(to, room) || [...room.startsWith('..') ? [] : TABLES, ...may].some((start) => to.startsWith(start))
}

function importsOf (file: string, text: string): { specifier: string, isType: boolean }[] {
  const { staticImports, staticExports, dynamicImports } = parseSync(file, text).module
  const values = new Set(dynamicImports.map(({ start }) => start))
  return [
    ...staticImports.map(({ moduleRequest, entries }) => ({ specifier: moduleRequest.value,
      isType: entries.length > 0 && entries.every(({ isType }) => isType) })
    ),
    ...staticExports.flatMap(({ entries }) => entries).flatMap(({ moduleRequest, isType }) =>
      moduleRequest ? { specifier: moduleRequest.value, isType } : []
    ),
    // The parser lists no import('…') of a type.
    ...Array.from(text.matchAll(/\bimport\('([^']+)'\)/g),
      ({ index, 1: specifier }) => ({ specifier, isType: !values.has(index) }))
  ]
}

function placeOf (file: string): number {
  return ORDER.findIndex((place) => isIn(file, place))
}

function isIn (file: string, place: string): boolean {
  return file === place || file.startsWith(`${place}/`)
}

/** @returns its path from server/; of a part of a feature with its room before it */
function fromServer (file: string): string {
  const place = path.posix.relative('server', file)
  const [, folder, part] = /^([\w-]+)\/(api|page|cli)[-.]/.exec(place) ?? []
  return part === undefined || SHARED.includes(folder) ? place : `${ROOM_OF[part]}/${place}`
}
