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
    may: ['admin/', 'api/apps.js', 'app/', 'cluster/policy.js', 'config/', 'events/', 'fleet/', 'handover/', 'health.js', 'keeper/', 'system/', 'systemd/', 'terminal.js', '../db/']
  },
  app: {
    because: 'an app has of the process what it is lent, and nothing global',
    may: ['cluster/', 'config/', 'crashes/', 'deck.js', 'diagnostics/', 'doctor/', 'events/', 'handover/', 'jobs/', 'lifecycle/', 'logs/', 'programs/', 'releases/', 'system/', 'telemetry/', 'vitals/', 'alerts/', '../db/', '../workers/free-memory.js', '../workers/look-together.js'],
    never: OF_THE_CLUSTER
  },
  lifecycle: { because: 'the lifecycle is pure: it imports its own files, words and the tables of errors, causes and problems alone', may: ['held-words.js'], never: ['^[^.]'] },
  cluster: {
    because: 'the cluster makes happen what the lifecycle decides, and knows nothing of who watches it',
    may: ['lifecycle/', 'crashes/', 'launch/preloads.js', 'programs/', 'releases/', 'system/', 'systemd/', '../workers/'],
    never: ['^(express|socket\\.io|better-sqlite3)']
  },
  programs: { because: 'a program is heard by its system calls, whoever wants to know', may: ['system/', 'systemd/unit-of.js', '../workers/protocol.js', '../workers/socket-file.js'] },
  jobs: { because: 'jobs run beside the workers, and know nothing of these', may: ['cluster/command-', 'config/nearest.js', 'lifecycle/duration.js', 'system/'], never: OF_THE_CLUSTER },
  keeper: { because: 'the keeper only starts masters', may: ['../workers/inspector.js', '../workers/look-together.js', 'lifecycle/', 'system/', 'systemd/'], never: ['^(?!node:|\\.)'] },
  handover: { because: 'a hand-over knows masters and what they remember', may: ['keeper/', 'system/', '../db/', '../workers/descriptor.js'] },
  releases: { because: 'releases know nothing of the cluster that runs them', may: ['config/release-id.js', 'launch/node-options.js', 'lifecycle/', 'system/own-variables.js', 'system/process-group.js', 'system/without-url-secrets.js', 'vitals/', '../db/cursor.js', '../public/format.js', '../workers/'] },
  crashes: { because: 'crashes are examined without knowing who asks', may: [] },
  vitals: { because: 'vitals are kept without knowing who looks at them', may: ['config/', '../workers/'] },
  logs: { because: 'logs are kept without knowing who reads them', may: ['system/', '../public/log-levels.js', '../public/log-query.js'] },
  diagnostics: { because: 'diagnostics reach the workers through what they are handed', may: ['system/json-file.js', '../workers/free-memory.js'] },
  doctor: { because: 'checks are pure, and go by what is found in the app\'s folder, the machine and what they are handed', may: ['config/', 'lifecycle/rollout/strategy.js', 'releases/', 'system/', 'systemd/', '../public/command-text.js', '../public/format.js'], never: OF_THE_CLUSTER },
  alerts: { because: 'alerts hear the events alone', may: ['events/', 'config/alert-kinds.js', 'system/closing.js', 'system/loopback.js'] },
  telemetry: { because: 'collectors are told what the rooms hand over', may: ['events/', 'system/', '../public/log-levels.js', '../workers/protocol.js'], never: OF_THE_CLUSTER },
  events: { because: 'the event stream knows nobody who publishes or subscribes', may: ['../public/format.js'] },
  config: { because: 'the configuration knows nobody whom it configures', may: ['launch/', 'lifecycle/duration.js', 'lifecycle/ready-line.js', 'system/loopback.js', 'system/trust.js', 'system/without-url-secrets.js', 'system/working-folder.js'] },
  launch: { because: 'what would run is told by the files alone', may: [], never: ['^(?!node:|\\.)'] },
  system: { because: 'the system below knows nobody above', may: ['../db/lock.js'] },
  systemd: { because: 'the service manager is told what the rooms hand over', may: ['system/', 'health.js', '../workers/socket-file.js'] },
  admin: { because: ADMIN, may: ['api/', 'dashboard/', 'health.js', 'mcp/', 'system/connection-owner.js', 'system/heap.js', 'telemetry/'], never: OF_THE_CLUSTER },
  mcp: { because: 'agents ask by the API alone', may: ['api/', 'config/', 'manual.js', 'preview-facts.js', 'system/one-line.js', '../public/format.js'], never: OF_THE_CLUSTER },
  api: { because: ADMIN, may: ['config/', 'crash-issue.js', 'doctor/finding.js', 'events/kinds.js', 'events/notices.js', 'vitals/columns.js', '../public/flame-tree.js', '../public/log-levels.js', '../public/log-query.js'], never: OF_THE_CLUSTER },
  dashboard: { because: ADMIN, may: ['api/', 'config/', 'crash-issue.js', 'cron-words.js', 'doctor/finding.js', 'doctor/node-lines.js', 'events/', 'held-words.js', 'health.js', 'last-known.js', 'manual.js', 'preview-facts.js', 'system/loopback.js', '../public/'], never: OF_THE_CLUSTER },
  fleet: { because: 'a fleet knows its deck, and nobody who asks it', may: ['config/actor-names.js', 'config/app-states.js', 'config/line-place.js', 'config/member-name.js', 'health.js', 'last-known.js', 'system/', '../public/format.js'], never: OF_THE_CLUSTER },
  import: { because: 'what PM2 was told is read without a master', may: ['config/', 'launch/packages.js', 'lifecycle/duration.js', 'system/home-folder.js', 'system/one-line.js', 'system/own-variables.js', 'system/process-owner.js', 'system/trust.js', 'system/user.js'], never: OF_THE_CLUSTER },
  library: { because: 'a program reaches the cluster through the deck alone', may: ['api/input.js', 'config/'], never: OF_THE_CLUSTER },
  cli: { because: 'the commands talk to a master through its admin API alone', may: ['keeper/link.js', 'lifecycle/duration.js', 'config/', 'cron-words.js', 'doctor/', 'events/kinds.js', 'handover/host-line.js', 'held-words.js', 'health.js', 'import/', 'launch/', 'manual.js', 'preview-facts.js', 'programs/', 'terminal.js', 'systemd/', 'system/archive.js', 'system/fallback-folder.js', 'system/home-folder.js', 'system/host-folder.js', 'system/http.js', 'system/json-file.js', 'system/loan.js', 'system/make-folders.js', 'system/one-line.js', 'system/own-variables.js', 'system/place-text.js', 'system/process-identity.js', 'system/process-owner.js', 'system/process-tree.js', 'system/recipient.js', 'system/running-decks.js', 'system/shell-limits.js', 'system/start-trace.js', 'system/trust.js', 'system/user.js', 'system/wait-at-most.js', 'system/working-folder.js', '../public/format.js'], never: OF_THE_CLUSTER }
}

/** @type {{ files: string[], ignores?: string[], because: string, forbidden: string[] }[]} `forbidden`: regular expressions over the specifier; where two match a file, the later one holds */
const LAYERS = [
  {
    files: ['server/**/*.js'],
    ignores: ['server/command-line.js', 'server/cli/**'],
    because: 'nothing but node starts the command line',
    forbidden: [String.raw`/cli(\.js$|/)`]
  },
  ...Object.entries(ROOMS).map(([room, { because, may, never = [] }]) => ({
    files: [`server/${room}/*.js`],
    because,
    forbidden: [String.raw`^\.\./(?!${['errors.js', 'causes.js', 'problem.js', ...may].join('|').replaceAll('.', String.raw`\.`)})`, ...never]
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
    files: ['workers/protocol.js'],
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
  'server/errors.js', 'server/causes.js', 'server/problem.js', 'server/cron-words.js', 'server/held-words.js', 'public/format.js', 'public/log-levels.js', 'public/log-query.js', 'public/readable-text.js', 'public/flame-tree.js', 'server/launch', 'server/events', 'server/lifecycle',
  'db', 'server/system', 'server/config', 'workers', 'server/systemd', 'server/programs', 'server/vitals', 'server/crashes', 'server/crash-issue.js', 'server/crash-reasons.js', 'server/health.js', 'server/logs',
  'server/releases', 'server/keeper', 'server/cluster', 'server/jobs', 'server/diagnostics', 'server/telemetry', 'server/alerts', 'server/doctor', 'server/last-known.js', 'server/fleet', 'server/preview.js', 'server/preview-facts.js', 'server/deck.js',
  'server/api', 'public', 'server/manual.js', 'server/dashboard', 'server/mcp', 'server/admin', 'server/handover', 'server/terminal.js', 'server/app', 'server/import',
  'server/host', 'server/cli', 'server/library', 'server/not-loaded.js', 'server/command-line.js', 'server/compile-cache.js', 'server/own-code.js', 'server/run-here.js', 'server/node-needed.js', 'server/run-on.js', 'server/cli.js', 'server/index.js'
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
    rules: { 'no-restricted-globals': ['error', { name: 'queueMicrotask', message: 'before Node 24 it forgets of which app an exception is; see server/host/app-scopes.js. Promise.resolve().then() does not' }] }
  },
  {
    files: ['server/command-line.js', 'server/run-on.js', 'server/cli/start.js', 'workers/**/*.js', 'test/**/*.js', 'test/**/*.cjs'],
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
