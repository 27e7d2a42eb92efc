import path from 'node:path'
import neostandard from 'neostandard'

const ADMIN = 'the admin side reaches the cluster through the deck alone, and the history through what it is handed'
const OF_THE_CLUSTER = ['^node:cluster$', 'better-sqlite3']

/**
 * The rooms of server/: what each may reach for besides node, packages, its own files and the tables of errors, causes and problems. An arrow that
 * is not here does not exist; there is no circle among them.
 * @type {Record<string, { because: string, may: string[], never?: string[] }>} `may`: beginnings of specifiers from the
 *   room's folder; `never`: regular expressions
 */
const ROOMS = {
  host: {
    because: 'what a process has once meets its apps here, and nobody reaches for it but those who start a master',
    may: ['admin/', 'api/apps.ts', 'app/', 'cluster/policy.ts', 'config/', 'events/', 'fleet/', 'handover/', 'health.ts', 'keeper/', 'system/', 'systemd/', 'terminal.ts', '../db/']
  },
  app: {
    because: 'an app has of the process what it is lent, and nothing global',
    may: ['cluster/', 'config/', 'crashes/', 'deck.ts', 'diagnostics/', 'doctor/', 'events/', 'handover/', 'jobs/', 'lifecycle/', 'logs/', 'programs/', 'releases/', 'system/', 'telemetry/', 'vitals/', 'alerts/', '../db/', '../workers/free-memory.ts', '../workers/look-together.ts'],
    never: OF_THE_CLUSTER
  },
  lifecycle: { because: 'the lifecycle is pure: it imports its own files, words and the tables of errors, causes and problems alone', may: ['held-words.ts'], never: ['^[^.]'] },
  cluster: {
    because: 'the cluster makes happen what the lifecycle decides, and knows nothing of who watches it',
    may: ['lifecycle/', 'crashes/', 'launch/preloads.ts', 'programs/', 'releases/', 'system/', 'systemd/', '../workers/'],
    never: ['^(express|socket\\.io|better-sqlite3)']
  },
  programs: { because: 'a program is heard by its system calls, whoever wants to know', may: ['system/', 'systemd/unit-of.ts', '../workers/protocol.ts', '../workers/socket-file.ts'] },
  jobs: { because: 'jobs run beside the workers, and know nothing of these', may: ['cluster/command-', 'config/nearest.ts', 'lifecycle/duration.ts', 'system/'], never: OF_THE_CLUSTER },
  keeper: { because: 'the keeper only starts masters', may: ['../workers/inspector.ts', '../workers/look-together.ts', 'lifecycle/', 'system/', 'systemd/'], never: ['^(?!node:|\\.)'] },
  handover: { because: 'a hand-over knows masters and what they remember', may: ['keeper/', 'system/', '../db/', '../workers/descriptor.ts'] },
  releases: { because: 'releases know nothing of the cluster that runs them', may: ['config/release-id.ts', 'launch/node-options.ts', 'lifecycle/', 'system/own-variables.ts', 'system/process-group.ts', 'system/without-url-secrets.ts', 'vitals/', '../db/cursor.ts', '../public/format.ts', '../workers/'] },
  crashes: { because: 'crashes are examined without knowing who asks', may: [] },
  vitals: { because: 'vitals are kept without knowing who looks at them', may: ['config/', '../workers/'] },
  logs: { because: 'logs are kept without knowing who reads them', may: ['system/', '../public/log-levels.ts', '../public/log-query.ts'] },
  diagnostics: { because: 'diagnostics reach the workers through what they are handed', may: ['system/json-file.ts', '../workers/free-memory.ts'] },
  doctor: { because: 'checks are pure, and go by what is found in the app\'s folder, the machine and what they are handed', may: ['config/', 'lifecycle/rollout/strategy.ts', 'releases/', 'system/', 'systemd/', '../public/command-text.ts', '../public/format.ts'], never: OF_THE_CLUSTER },
  alerts: { because: 'alerts hear the events alone', may: ['events/', 'config/alert-kinds.ts', 'system/closing.ts', 'system/loopback.ts'] },
  telemetry: { because: 'collectors are told what the rooms hand over', may: ['events/', 'system/', '../public/log-levels.ts', '../workers/protocol.ts'], never: OF_THE_CLUSTER },
  events: { because: 'the event stream knows nobody who publishes or subscribes', may: ['../public/format.ts'] },
  config: { because: 'the configuration knows nobody whom it configures', may: ['launch/', 'lifecycle/duration.ts', 'lifecycle/ready-line.ts', 'system/loopback.ts', 'system/trust.ts', 'system/without-url-secrets.ts', 'system/working-folder.ts'] },
  launch: { because: 'what would run is told by the files alone', may: [], never: ['^(?!node:|\\.)'] },
  system: { because: 'the system below knows nobody above', may: ['../db/lock.ts'] },
  systemd: { because: 'the service manager is told what the rooms hand over', may: ['system/', 'health.ts', '../workers/socket-file.ts'] },
  admin: { because: ADMIN, may: ['api/', 'dashboard/', 'health.ts', 'mcp/', 'system/connection-owner.ts', 'system/heap.ts', 'telemetry/'], never: OF_THE_CLUSTER },
  mcp: { because: 'agents ask by the API alone', may: ['api/', 'config/', 'manual.ts', 'preview-facts.ts', 'system/one-line.ts', '../public/format.ts'], never: OF_THE_CLUSTER },
  api: { because: ADMIN, may: ['config/', 'crash-issue.ts', 'doctor/finding.ts', 'events/kinds.ts', 'events/notices.ts', 'vitals/columns.ts', '../public/flame-tree.ts', '../public/log-levels.ts', '../public/log-query.ts'], never: OF_THE_CLUSTER },
  dashboard: { because: ADMIN, may: ['api/', 'config/', 'crash-issue.ts', 'cron-words.ts', 'doctor/finding.ts', 'doctor/node-lines.ts', 'events/', 'held-words.ts', 'health.ts', 'last-known.ts', 'manual.ts', 'preview-facts.ts', 'system/loopback.ts', '../public/'], never: OF_THE_CLUSTER },
  fleet: { because: 'a fleet knows its deck, and nobody who asks it', may: ['config/actor-names.ts', 'config/app-states.ts', 'config/line-place.ts', 'config/member-name.ts', 'health.ts', 'last-known.ts', 'system/', '../public/format.ts'], never: OF_THE_CLUSTER },
  import: { because: 'what PM2 was told is read without a master', may: ['config/', 'launch/packages.ts', 'lifecycle/duration.ts', 'system/home-folder.ts', 'system/one-line.ts', 'system/own-variables.ts', 'system/process-owner.ts', 'system/trust.ts', 'system/user.ts'], never: OF_THE_CLUSTER },
  library: { because: 'a program reaches the cluster through the deck alone', may: ['api/input.ts', 'config/'], never: OF_THE_CLUSTER },
  cli: { because: 'the commands talk to a master through its admin API alone', may: ['keeper/link.ts', 'lifecycle/duration.ts', 'config/', 'cron-words.ts', 'doctor/', 'events/kinds.ts', 'handover/host-line.ts', 'held-words.ts', 'health.ts', 'import/', 'launch/', 'manual.ts', 'preview-facts.ts', 'programs/', 'terminal.ts', 'systemd/', 'system/archive.ts', 'system/fallback-folder.ts', 'system/home-folder.ts', 'system/host-folder.ts', 'system/http.ts', 'system/json-file.ts', 'system/loan.ts', 'system/make-folders.ts', 'system/one-line.ts', 'system/own-variables.ts', 'system/place-text.ts', 'system/process-identity.ts', 'system/process-owner.ts', 'system/process-tree.ts', 'system/recipient.ts', 'system/running-decks.ts', 'system/shell-limits.ts', 'system/start-trace.ts', 'system/trust.ts', 'system/user.ts', 'system/wait-at-most.ts', 'system/working-folder.ts', '../public/format.ts'], never: OF_THE_CLUSTER }
}

/** @type {{ files: string[], ignores?: string[], because: string, forbidden: string[] }[]} `forbidden`: regular expressions over the specifier; where two match a file, the later one holds */
const LAYERS = [
  {
    files: ['server/**/*.js'],
    ignores: ['server/command-line.ts', 'server/cli/**'],
    because: 'nothing but node starts the command line',
    forbidden: [String.raw`/cli(\.js$|/)`]
  },
  ...Object.entries(ROOMS).map(([room, { because, may, never = [] }]) => ({
    files: [`server/${room}/*.js`],
    because,
    forbidden: [String.raw`^\.\./(?!${['errors.ts', 'causes.ts', 'problem.ts', ...may].join('|').replaceAll('.', String.raw`\.`)})`, ...never]
  })),
  {
    files: ['server/lifecycle/rollout/*.js'],
    because: ROOMS.lifecycle.because,
    forbidden: [String.raw`^(?!\./|\.\./[\w-]+\.js$|\.\./\.\./causes\.js$)`]
  },
  {
    files: ['workers/**/*.js'],
    because: 'workers run inside the app: they import node and their siblings alone',
    forbidden: [String.raw`^(?!node:|\./)`]
  },
  {
    files: ['workers/protocol.ts'],
    because: 'both sides import the protocol, so it imports nothing',
    forbidden: ['.*']
  },
  {
    files: ['db/**/*.js'],
    because: 'the database knows no HTTP and no cluster, only the error table',
    forbidden: [String.raw`\.\./(?!server/errors\.js$)`, '^(node:)?(https?|http2|net|cluster|child_process)$', '^(express|socket\\.io)']
  }
]

/**
 * Everything of ours from the bottom up: a type may be known to those above it alone, so there is no circle among types
 * either. A folder stands for all that is in it.
 */
const ORDER = [
  'server/api/shapes.ts', 'server/errors.ts', 'server/causes.ts', 'server/problem.ts', 'server/cron-words.ts', 'server/held-words.ts', 'public/format.ts', 'public/log-levels.ts', 'public/log-query.ts', 'public/readable-text.ts', 'public/flame-tree.ts', 'server/launch', 'server/events', 'server/lifecycle',
  'db', 'server/system', 'server/config', 'workers', 'server/systemd', 'server/programs', 'server/vitals', 'server/crashes', 'server/crash-issue.ts', 'server/crash-reasons.ts', 'server/health.ts', 'server/logs',
  'server/releases', 'server/keeper', 'server/cluster', 'server/jobs', 'server/diagnostics', 'server/telemetry', 'server/alerts', 'server/doctor', 'server/last-known.ts', 'server/fleet', 'server/preview.ts', 'server/preview-facts.ts', 'server/deck.ts',
  'server/api', 'public', 'server/manual.ts', 'server/dashboard', 'server/mcp', 'server/admin', 'server/handover', 'server/terminal.ts', 'server/app', 'server/import',
  'server/host', 'server/cli', 'server/library', 'server/not-loaded.ts', 'server/command-line.ts', 'server/compile-cache.js', 'server/own-code.js', 'server/run-here.js', 'server/node-needed.js', 'server/run-on.js', 'server/cli.js', 'server/index.ts'
]

/** @param {string} file from the top @returns {string | undefined} */
function placeOf (file) {
  return ORDER.find((place) => file === place || file.startsWith(`${place}/`))
}

/** Looks at the imports of JSDoc types, which no other rule sees. @type {import('eslint').Rule.RuleModule} */
const typesPointDown = {
  create ({ filename, cwd, sourceCode, report }) {
    const file = path.relative(cwd, filename)
    const own = placeOf(file)
    return {
      Program (node) {
        if (!own) return report({ node, message: `${file} has no place in ORDER` })
        for (const comment of sourceCode.getAllComments()) {
          for (const [, specifier] of comment.value.matchAll(/import\('(\.[^']+)'\)/g)) {
            const place = placeOf(path.normalize(path.join(path.dirname(file), specifier)))
            if (place && ORDER.indexOf(place) > ORDER.indexOf(own)) report({ loc: comment.loc ?? { line: 1, column: 0 }, message: `${own} may not know types of ${place}, which is above it in ORDER` })
          }
        }
      }
    }
  }
}

export default [
  ...neostandard({ ignores: ['coverage/', 'dist/', 'types/', '.clusterdeck/', 'test/apps/.installed/', 'test/programs/{sources,.installed}/', 'test/bench/compare/.peers/'] }),
  ...neostandard({ env: ['browser'], files: ['public/**/*.js', 'test/browser/**/*.js', 'test/support/{browser,dashboard}.js'], noStyle: true, noJsx: true }),
  {
    rules: {
      // For callbacks that take an error first; those here take what node's own handles give, a number.
      'n/no-callback-literal': 'off',
      // Libraries do not end the process; the two that may are named below.
      'n/no-process-exit': 'off',
      'no-restricted-properties': ['error', { object: 'process', property: 'exit', message: 'only the command line and preload.js decide exit codes' }]
    }
  },
  {
    files: ['{server,db}/**/*.js'],
    rules: { 'no-restricted-globals': ['error', { name: 'queueMicrotask', message: 'before Node 24 it forgets of which app an exception is; see server/host/app-scopes.ts. Promise.resolve().then() does not' }] }
  },
  {
    files: ['server/command-line.ts', 'server/run-on.js', 'server/cli/start.ts', 'workers/**/*.js', 'test/**/*.js', 'test/**/*.cjs'],
    rules: { 'no-restricted-properties': 'off' }
  },
  {
    files: ['{server,db,workers,public}/**/*.js'],
    plugins: { house: { rules: { 'types-point-down': typesPointDown } } },
    rules: { 'house/types-point-down': 'error' }
  },
  { languageOptions: { ecmaVersion: 'latest' } },
  ...LAYERS.map(({ files, ignores = [], because, forbidden }) => ({
    files,
    ignores,
    rules: {
      'no-restricted-imports': ['error', { patterns: forbidden.map((regex) => ({ regex, message: because })) }]
    }
  }))
]
