import neostandard from 'neostandard'

/**
 * Imports go one way only: cli → main → (cluster, admin, releases, vitals, recorder) → (lifecycle, event-stream, db,
 * workers/protocol). Each rule names the files of one layer and what they must not reach for; where two match a file,
 * the later one holds.
 * @type {{ files: string[], ignores?: string[], because: string, forbidden: string[] }[]} `forbidden`: regular expressions over the specifier
 */
const LAYERS = [
  {
    files: ['server/**/*.js'],
    ignores: ['server/cli.js', 'server/cli/**'],
    because: 'nothing but node starts the command line',
    forbidden: [String.raw`/cli(\.js$|/)`]
  },
  {
    files: ['server/lifecycle/**/*.js'],
    because: 'the lifecycle is pure: it imports its siblings and the error table alone',
    forbidden: [String.raw`^(?!\./|\.\./errors\.js$)`]
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
  },
  {
    files: ['server/admin/**/*.js'],
    because: 'the admin side reaches the cluster through the deck alone, and the history through what it is handed',
    forbidden: [String.raw`/(cluster|releases|vitals)/`, String.raw`/(main|cli|recorder|config)\.js$`, '^node:(cluster|child_process)$', 'better-sqlite3', String.raw`/db/`]
  },
  {
    files: ['server/cluster/**/*.js'],
    because: 'the cluster knows nothing of who watches it',
    forbidden: [String.raw`/(admin|db|views)/`, String.raw`/(main|cli|recorder)\.js$`, '^(express|socket\\.io|better-sqlite3)']
  },
  {
    files: ['server/{recorder,event-stream,errors,config,config-file,options,cpu-count,nearest}.js', 'server/releases/**/*.js', 'server/vitals/**/*.js', 'server/crashes/**/*.js'],
    because: 'this layer lies below main and beside admin and cluster',
    forbidden: [String.raw`/(admin|cluster|cli)/`, String.raw`/(main|cli)\.js$`]
  },
  {
    files: ['server/cli/**/*.js'],
    because: 'the commands talk to a master through its admin API alone',
    forbidden: [String.raw`/(admin|cluster|lifecycle|db|releases|vitals)/`, String.raw`/(main|recorder)\.js$`]
  }
]

export default [
  ...neostandard({ ignores: ['coverage/', '.clusterdeck/', 'test/apps/.installed/'] }),
  ...neostandard({ env: ['browser'], files: ['public/**/*.js', 'test/browser/**/*.js', 'test/support/{browser,dashboard}.js'], noStyle: true, noJsx: true }),
  {
    rules: {
      // For callbacks that take an error first; those here take what node's own handles give, a number.
      'n/no-callback-literal': 'off',
      // Libraries do not end the process; the two that may are named below.
      'n/no-process-exit': 'off',
      'no-restricted-properties': ['error', { object: 'process', property: 'exit', message: 'only cli.js and preload.js decide exit codes' }]
    }
  },
  {
    files: ['server/cli.js', 'workers/**/*.js', 'test/**/*.js', 'test/**/*.cjs'],
    rules: { 'no-restricted-properties': 'off' }
  },
  ...LAYERS.map(({ files, ignores = [], because, forbidden }) => ({
    files,
    ignores,
    rules: {
      'no-restricted-imports': ['error', { patterns: forbidden.map((regex) => ({ regex, message: because })) }]
    }
  }))
]
