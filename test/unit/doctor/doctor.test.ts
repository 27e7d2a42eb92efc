import assert from 'node:assert/strict'
import { test } from 'node:test'
import { reportOf } from '../../../server/doctor/doctor.ts'
import { testStates } from '../../support/golden.ts'
import { soundFacts } from './facts.ts'

type Changes = Parameters<typeof soundFacts>[0]

test('an app with which nothing is wrong has no problem, and nothing that is not known', () => {
  const { items, problems } = reportOf(soundFacts())
  assert.deepEqual([items.filter(({ severity }) => severity !== 'ok'), problems], [[], 0])
})

test('the worst comes first, and errors and warnings are counted', () => {
  const { items, problems } = reportOf(
    soundFacts({ machine: { descriptors: 1024, isClockSynchronized: null }, disk: { isWritable: false },
      config: { ready: {} } })
  )
  assert.deepEqual(items.map(({ severity }) => severity).filter((each) => each !== 'ok'), ['error', 'warning',
    'unknown', 'info'])
  assert.equal(problems, 2)
})

const MIB = 1024 ** 2
const IN_PLACE = { config: { releases: { mode: 'auto' }, ready: { path: '/health' } } }

/** What is changed of an app with which nothing is wrong. */
const CASES: Record<string, Changes> = { 'releases in place': IN_PLACE,
  'releases in place, with files that the app writes': { ...IN_PLACE,
    files: { data: ['data.sqlite', 'uploads/'], environment: ['.env'], logs: ['logs/'] } },
  'a file whose name no flag can say': { ...IN_PLACE, files: { data: ['my data.db'] } },
  'what cannot be copied': { ...IN_PLACE, copyRefusal: 'its packages are elsewhere' },
  'releases that are live because somebody wants it': { config: { releases: { mode: 'live' }, ready: { path: '/' } },
    settings: [{ name: 'releases.mode', value: 'live', source: 'file', from: 'f', default: 'auto', description: '',
      expected: '', configured: null, unit: null, takesEffect: 'start' as const, isSecret: false, isUsed: true }] },
  'a database that releases do not share': { files: { data: ['shop.db'] } },
  'what the app has written into its release': {
    running: {
      written: { release: 'r7', copy: '/srv/shop/.clusterdeck/releases/r7', home: '/srv/shop',
        files: ['uploads/', 'it\'s.db'] }
    }
  },
  'what the app has written into its release, which is of a commit': { ...IN_PLACE, place: null,
    running: { releaseMode: 'commit',
      written: { release: 'r7', copy: '/srv/shop/.clusterdeck/releases/r7', home: '/srv/shop', files: ['shop.db'] } } },
  'a release of a commit, whatever is in the folder of the app': { ...IN_PLACE, running: { releaseMode: 'commit' } },
  'a database in a release behind a link': { ...IN_PLACE,
    place: { mode: 'symlink', entry: '/srv/releases/7/app.js', folder: '/srv/releases/7', cwd: '/srv/releases/7' },
    files: { data: ['shop.db'] } },
  'errors in the first half minute alone': { config: { releases: { mode: 'folder' }, ready: {} },
    files: { healthPaths: ['/healthz'] }, running: { serverErrors: { early: 4, later: 0 } } },
  'a release of 5xx, which says nothing about readiness': { config: { releases: { mode: 'folder' }, ready: {} },
    files: { healthPaths: ['/healthz'] },
    running: { serverErrors: { early: 40, later: 0 },
      answers: [{ release: 'r1', requests: 400, failed: 1 }, { release: 'r2', requests: 30, failed: 30 }, {
        release: 'r3',
        requests: 40,
        failed: 40
      }] } },
  'a release of 5xx that was rolled back': { config: { releases: { mode: 'folder' }, ready: {} },
    running: { release: 'r1', serverErrors: { early: 40, later: 0 },
      answers: [{ release: 'r1', requests: 400, failed: 1 }, { release: 'r2', requests: 30, failed: 30 }] } },
  'releases that all fail': { running: { answers: [{ release: 'r3', requests: 40, failed: 40 }] } },
  'a release that has failed for too few requests to tell': {
    running: { answers: [{ release: 'r3', requests: 10, failed: 10 }] }
  },
  'errors at all times, which say nothing about readiness': { config: { releases: { mode: 'folder' }, ready: {} },
    running: { serverErrors: { early: 4, later: 1 } } },
  'Socket.IO without sticky connections': { package: { dependencies: ['socket.io'], engines: null } },
  'metrics that the app answers itself, of one worker': { package: { dependencies: ['prom-client'], engines: null },
    files: { code: 'app.get(\'/metrics\', async (_, response) => response.end(await register.metrics()))' } },
  'metrics of a package that answers by itself': { package: { dependencies: ['express-prom-bundle'], engines: null } },
  'metrics that the app only counts': { package: { dependencies: ['prom-client'], engines: null } },
  'metrics that the app sums up itself': { package: { dependencies: ['prom-client'], engines: null },
    files: { code: 'app.get(\'/metrics\', () => aggregatorRegistry.clusterMetrics())' } },
  'metrics of the only worker': { package: { dependencies: ['swagger-stats'], engines: null },
    running: { desiredWorkers: 1 } },
  'sessions in memory': { package: { dependencies: ['express-session'], engines: null },
    files: { code: 'import session from \'express-session\'\napp.use(session({ secret }))' } },
  'sessions of code that could not be read': { package: { dependencies: ['express-session'], engines: null } },
  'a library that talks to a primary of its own': {
    running: {
      unanswered: [{ library: 'log4js',
        message:
          'the library log4js sends "log4js:message" to a primary of the app\'s own, which does not run under clusterdeck: the lines of its log are lost; set disableClustering: true in log4js.configure()' }]
    }
  }, 'requests that were cut off': { running: { cutOff: { at: '2026-10-31T00:00:00.000Z', requests: 2, count: 1 } } },
  'requests that take longer than a drain': { running: { longestMs: 45_300 } },
  'workers that do not fit into the control group': {
    machine: { memory: { totalBytes: 8192 * MIB, limitBytes: 512 * MIB } },
    running: { workers: [{ pid: 1, rssBytes: 300 * MIB, openConnections: 0 }] }
  },
  'a deploy that does not fit': { machine: { memory: { totalBytes: 8192 * MIB, limitBytes: 700 * MIB } },
    running: { desiredWorkers: 3, workers: [{ pid: 1, rssBytes: 180 * MIB, openConnections: 0 }] } },
  'a deploy with a surge in percent that does not fit, as a share is rounded up': {
    machine: { memory: { totalBytes: 8192 * MIB, limitBytes: 800 * MIB } },
    config: { releases: { mode: 'folder' }, ready: { path: '/' }, rollout: { surge: '50%' } },
    running: { desiredWorkers: 3, workers: [{ pid: 1, rssBytes: 150 * MIB, openConnections: 0 }] }
  },
  'heap limits that do not fit, before a start': { running: null,
    machine: { memory: { totalBytes: 1024 * MIB, limitBytes: null } },
    config: { releases: { mode: 'folder' }, ready: { path: '/' }, execArgv: ['--max-old-space-size=600'] } },
  'few descriptors': { machine: { descriptors: 1024 } },
  'few descriptors in a container': {
    machine: { descriptors: 1024, isContainer: true, hasSystemd: false, service: null }
  }, 'few descriptors in a shell': { machine: { descriptors: 1024, hasSystemd: false, service: null } },
  'connections near the limit': { user: { isRoot: true, name: 'root' },
    machine: { descriptors: 4096, hasSystemd: false, service: null },
    running: { workers: [{ pid: 1, rssBytes: 1e6, openConnections: 3500 }] } },
  'a Node that gets no more fixes': { nodeVersion: 'v20.20.2', ownNodeVersion: 'v20.20.2' },
  'a Node that gets no more fixes, of an app that wants no newer one': { nodeVersion: 'v20.20.2',
    ownNodeVersion: 'v20.20.2', package: { dependencies: [], engines: '<=20' } },
  'a Node that lacks security fixes, of the app alone': { nodeVersion: 'v24.0.0', hasNvm: true },
  'a Node that lacks security fixes, of clusterdeck alone, as another program runs the app': { nodeVersion: null,
    ownNodeVersion: 'v24.0.0', hasNvm: true, package: { dependencies: [], engines: '>=99' } },
  'a Node that the app does not want': { package: { dependencies: [], engines: '>=26' }, hasNvm: true },
  'a range that is not read': { package: { dependencies: [], engines: '18 - 20' } },
  'a clock that nobody keeps': { machine: { isClockSynchronized: false } },
  'a clock that was set back': { running: { newestEventAt: Date.parse('2026-11-01T01:00:00Z') } },
  'a data folder that cannot be written': { disk: { isWritable: false } },
  'a data folder on a network file system': { disk: { type: 'network' } },
  'a data folder in memory': { disk: { type: 'memory' } },
  'a disk that is nearly full': { disk: { freeBytes: 300 * MIB } },
  'releases that have no room': { disk: { freeBytes: 1000 * MIB }, running: { releaseBytes: 200 * MIB } },
  'a data folder that goes with its container': { disk: { type: 'overlay', isRoot: true },
    machine: { isContainer: true, hasSystemd: false, service: null, firstProcess: 'clusterdeck' } },
  'a shell as process 1': { machine: { isContainer: true, hasSystemd: false, service: null, firstProcess: 'sh' } },
  'nothing that starts it at boot': { machine: { service: null, isInService: false } },
  'a service that is not enabled': {
    machine: { service: { name: 'shop.service', isOfUser: true, killMode: 'mixed', isEnabled: false, lingers: true } }
  },
  'a service of a user who does not linger': {
    machine: { service: { name: 'shop.service', isOfUser: true, killMode: 'mixed', isEnabled: true, lingers: false } }
  },
  'a unit that ends all at once': {
    machine: {
      service: { name: 'shop.service', isOfUser: false, killMode: 'control-group', isEnabled: true, lingers: null }
    }
  }, 'no keeper': { running: { isKept: false } },
  'another version than is installed': { running: { installedVersion: '1.1.0' } },
  'another version than is installed, without a keeper, so that no upgrade is possible': {
    running: { installedVersion: '1.1.0', isKept: false }
  },
  'an admin page without TLS': {
    config: { releases: { mode: 'folder' }, ready: { path: '/' }, admin: { host: '0.0.0.0', plainHttp: true } }
  },
  'a crash loop': {
    running: {
      health: { tone: 'bad', text: 'No worker serves; slot 1 keeps crashing', hint: '', about: null, reasons: [],
        problems: 1 }
    }
  }, 'a port in use': { running: null, port: '3000', machine: { listeners: [{ port: 3000, address: '00000000' }] } } }

testStates(import.meta, 'reports', CASES,
  (changes) =>
    problemsOf(changes).map(({ id, severity, title, mend }) =>
      [`${severity} ${id}: ${withoutTable(title)}`, ...mend.map(({ text }) => `> ${text}`)].join('\n')
    ).join('\n'))

test('every problem says why it matters, in one sentence', () => {
  for (const { id, severity, why } of Object.values(CASES).flatMap(problemsOf)) {
    if ((severity === 'error' || severity === 'warning') && id !== 'health' && id !== 'in-place')
      assert.match(why, /^\S.+\.$/, id)
    assert.doesNotMatch(why, /\b1 more workers\b/)
  }
})

function problemsOf (changes: Changes) {
  return reportOf(soundFacts(changes)).items.filter(({ severity }) => severity !== 'ok')
}

/** Which release has the last security fixes changes with the table of Node releases. */
function withoutTable (title: string) {
  return title.replace(/(?<=security fixes of )\S+ \(\S+\)/, '… (…)')
}
