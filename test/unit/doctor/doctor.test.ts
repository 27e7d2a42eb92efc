import assert from 'node:assert/strict'
import { test } from 'node:test'
import { reportOf } from '../../../server/doctor/doctor.ts'
import { soundFacts } from './facts.ts'

type Changes = Parameters<typeof soundFacts>[0]

/** What is found, without what is in order. */
function found (changes: Changes) {
  return reportOf(soundFacts(changes)).items.filter(({ severity }) => severity !== 'ok').map((
    { id, severity, mend }
  ) => [severity, id, ...mend.map(({ text }) => text)])
}

test('an app with which nothing is wrong has no problem, and nothing that is not known', () => {
  assert.deepEqual(found({}), [])
  assert.equal(reportOf(soundFacts()).problems, 0)
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

/** By title: what is changed, and what is found. */
const CASES: Readonly<Record<string, [changes: Changes, found: string[][]]>> = {
  'releases in place': [IN_PLACE, [['warning', 'in-place', '--releases-mode folder']]],
  'releases in place, with files that the app writes': [{ ...IN_PLACE,
    files: { data: ['data.sqlite', 'uploads/'], environment: ['.env'], logs: ['logs/'] } }, [['warning', 'in-place',
    '--releases-mode folder --releases-shared \'.env data.sqlite uploads/ logs/\'']]],
  'a file whose name no flag can say': [{ ...IN_PLACE, files: { data: ['my data.db'] } }, [['warning', 'in-place',
    'releases: { mode: \'folder\', shared: [\'my data.db\'] }']]],
  'what cannot be copied': [{ ...IN_PLACE, copyRefusal: 'its packages are elsewhere' }, [['warning', 'in-place']]],
  'releases that are live because somebody wants it': [{ config: { releases: { mode: 'live' }, ready: { path: '/' } },
    settings: [{ name: 'releases.mode', value: 'live', source: 'file', from: 'f', default: 'auto', description: '',
      expected: '', configured: null, unit: null, takesEffect: 'start' as const, isSecret: false, isUsed: true }] }, [[
    'info',
    'in-place',
    '--releases-mode folder'
  ]]],
  'a database that releases do not share': [{ files: { data: ['shop.db'] } }, [['error', 'unshared-files',
    '--releases-shared shop.db']]],
  'what the app has written into its release': [{
    running: {
      written: { release: 'r7', copy: '/srv/shop/.clusterdeck/releases/r7', home: '/srv/shop',
        files: ['uploads/', 'it\'s.db'] }
    }
  }, [['error', 'unshared-files',
    'clusterdeck stop && mkdir -p /srv/shop/uploads/ && cp -a /srv/shop/.clusterdeck/releases/r7/uploads/. /srv/shop/uploads/ && mkdir -p /srv/shop && cp -a \'/srv/shop/.clusterdeck/releases/r7/it\'\\\'\'s.db\' \'/srv/shop/it\'\\\'\'s.db\'',
    '--releases-shared \'uploads/ it\'\\\'\'s.db\'']]],
  'what the app has written into its release, which is of a commit': [{ ...IN_PLACE, place: null,
    running: { releaseMode: 'commit',
      written: { release: 'r7', copy: '/srv/shop/.clusterdeck/releases/r7', home: '/srv/shop', files: ['shop.db'] } } },
    [['error', 'unshared-files',
      'clusterdeck stop && mkdir -p /srv/shop && cp -a /srv/shop/.clusterdeck/releases/r7/shop.db /srv/shop/shop.db',
      '--releases-shared shop.db']]],
  'a release of a commit, whatever is in the folder of the app': [{ ...IN_PLACE, running: { releaseMode: 'commit' } },
    []],
  'a database in a release behind a link': [{ ...IN_PLACE,
    place: { mode: 'symlink', entry: '/srv/releases/7/app.js', folder: '/srv/releases/7', cwd: '/srv/releases/7' },
    files: { data: ['shop.db'] } }, [['error', 'unshared-files',
    'mkdir -p /srv/shop/.clusterdeck/shared && mv -nT /srv/releases/7/shop.db /srv/shop/.clusterdeck/shared/shop.db && ln -s /srv/shop/.clusterdeck/shared/shop.db /srv/releases/7/shop.db']]],
  'errors in the first half minute alone': [{ config: { releases: { mode: 'folder' }, ready: {} },
    files: { healthPaths: ['/healthz'] }, running: { serverErrors: { early: 4, later: 0 } } }, [['warning', 'readiness',
    '--ready-path /healthz']]],
  'a release of 5xx, which says nothing about readiness': [{ config: { releases: { mode: 'folder' }, ready: {} },
    files: { healthPaths: ['/healthz'] },
    running: { serverErrors: { early: 40, later: 0 },
      answers: [{ release: 'r1', requests: 400, failed: 1 }, { release: 'r2', requests: 30, failed: 30 }, {
        release: 'r3',
        requests: 40,
        failed: 40
      }] } }, [['error', 'answers', 'clusterdeck rollback r1 --wait'], ['info', 'readiness', '--ready-path /healthz']]],
  'a release of 5xx that was rolled back': [{ config: { releases: { mode: 'folder' }, ready: {} },
    running: { release: 'r1', serverErrors: { early: 40, later: 0 },
      answers: [{ release: 'r1', requests: 400, failed: 1 }, { release: 'r2', requests: 30, failed: 30 }] } }, [['info',
    'readiness', 'Give the app a path such as /health that answers 200 once it can work, and set ready.path to it']]],
  'releases that all fail': [{ running: { answers: [{ release: 'r3', requests: 40, failed: 40 }] } }, [['error',
    'answers', 'clusterdeck logs', 'clusterdeck releases']]],
  'a release that has failed for too few requests to tell': [{
    running: { answers: [{ release: 'r3', requests: 10, failed: 10 }] }
  }, []],
  'errors at all times, which say nothing about readiness': [{ config: { releases: { mode: 'folder' }, ready: {} },
    running: { serverErrors: { early: 4, later: 1 } } }, [['info', 'readiness',
    'Give the app a path such as /health that answers 200 once it can work, and set ready.path to it']]],
  'Socket.IO without sticky connections': [{ package: { dependencies: ['socket.io'], engines: null } }, [['warning',
    'socket-io', '--dispatch sticky']]],
  'metrics that the app answers itself, of one worker': [{ package: { dependencies: ['prom-client'], engines: null },
    files: { code: 'app.get(\'/metrics\', async (_, response) => response.end(await register.metrics()))' } }, [[
    'warning',
    'own-metrics',
    'Have Prometheus read /metrics of the admin page, where prom-client is summed over all workers, or answer with aggregatorRegistry.clusterMetrics()'
  ]]],
  'metrics of a package that answers by itself': [{ package: { dependencies: ['express-prom-bundle'], engines: null } },
    [['warning', 'own-metrics',
      'Have Prometheus read /metrics of the admin page, where prom-client is summed over all workers, or answer with aggregatorRegistry.clusterMetrics()']]],
  'metrics that the app only counts': [{ package: { dependencies: ['prom-client'], engines: null } }, []],
  'metrics that the app sums up itself': [{ package: { dependencies: ['prom-client'], engines: null },
    files: { code: 'app.get(\'/metrics\', () => aggregatorRegistry.clusterMetrics())' } }, []],
  'metrics of the only worker': [{ package: { dependencies: ['swagger-stats'], engines: null },
    running: { desiredWorkers: 1 } }, []],
  'sessions in memory': [{ package: { dependencies: ['express-session'], engines: null },
    files: { code: 'import session from \'express-session\'\napp.use(session({ secret }))' } }, [['warning', 'sessions',
    'Give session({ … }) a store outside of the workers, such as connect-redis or connect-pg-simple']]],
  'sessions of code that could not be read': [{ package: { dependencies: ['express-session'], engines: null } }, [[
    'unknown',
    'sessions'
  ]]],
  'a library that talks to a primary of its own': [{
    running: {
      unanswered: [{ library: 'log4js',
        message:
          'the library log4js sends "log4js:message" to a primary: set disableClustering: true in log4js.configure()' }]
    }
  }, [['warning', 'unanswered', 'true in log4js.configure()']]],
  'requests that were cut off': [{ running: { cutOff: { at: '2026-10-31T00:00:00.000Z', requests: 2, count: 1 } } }, [[
    'error',
    'drain',
    '--drain-deadline-ms 120000'
  ]]],
  'requests that take longer than a drain': [{ running: { longestMs: 45_300 } }, [['warning', 'drain',
    '--drain-deadline-ms 92000']]],
  'workers that do not fit into the control group': [{
    machine: { memory: { totalBytes: 8192 * MIB, limitBytes: 512 * MIB } },
    running: { workers: [{ pid: 1, rssBytes: 300 * MIB, openConnections: 0 }] }
  }, [['error', 'memory',
    'Let a worker take less, as by --max-old-space-size=137, or give the control group more memory']]],
  'a deploy that does not fit': [{ machine: { memory: { totalBytes: 8192 * MIB, limitBytes: 700 * MIB } },
    running: { desiredWorkers: 3, workers: [{ pid: 1, rssBytes: 180 * MIB, openConnections: 0 }] } }, [['warning',
    'memory', 'clusterdeck scale 2', '--workers 2']]],
  'a deploy with a surge in percent that does not fit, as a share is rounded up': [{
    machine: { memory: { totalBytes: 8192 * MIB, limitBytes: 800 * MIB } },
    config: { releases: { mode: 'folder' }, ready: { path: '/' }, rollout: { surge: '50%' } },
    running: { desiredWorkers: 3, workers: [{ pid: 1, rssBytes: 150 * MIB, openConnections: 0 }] }
  }, [['warning', 'memory', 'clusterdeck scale 2', '--workers 2']]],
  'heap limits that do not fit, before a start': [{ running: null,
    machine: { memory: { totalBytes: 1024 * MIB, limitBytes: null } },
    config: { releases: { mode: 'folder' }, ready: { path: '/' }, execArgv: ['--max-old-space-size=600'] } }, [[
    'warning',
    'memory',
    'Let a worker take less, as by --max-old-space-size=308, or give the machine more memory'
  ], ['unknown', 'at-boot']]],
  'few descriptors': [{ machine: { descriptors: 1024 } }, [['warning', 'descriptors',
    'printf \'[Service]\\nLimitNOFILE=65536\\n\' | sudo install -D -m 644 /dev/stdin /etc/systemd/system/shop.service.d/files.conf && sudo systemctl daemon-reload && sudo systemctl restart shop.service']]],
  'few descriptors in a container': [{
    machine: { descriptors: 1024, isContainer: true, hasSystemd: false, service: null }
  }, [['warning', 'descriptors', 'Start the container with room for more: docker run --ulimit nofile=65536:65536']]],
  'few descriptors in a shell': [{ machine: { descriptors: 1024, hasSystemd: false, service: null } }, [['warning',
    'descriptors', 'sudo prlimit --pid $$ --nofile=65536:65536'], ['unknown', 'at-boot']]],
  'connections near the limit': [{ user: { isRoot: true, name: 'root' },
    machine: { descriptors: 4096, hasSystemd: false, service: null },
    running: { workers: [{ pid: 1, rssBytes: 1e6, openConnections: 3500 }] } }, [['error', 'descriptors',
    'prlimit --pid $$ --nofile=65536:65536'], ['unknown', 'at-boot']]],
  'a Node that gets no more fixes': [{ nodeVersion: 'v20.20.2', ownNodeVersion: 'v20.20.2' }, [['warning', 'node',
    'Install Node 26, and give its path to: clusterdeck upgrade --node PATH --wait']]],
  'a Node that gets no more fixes, of an app that wants no newer one': [{ nodeVersion: 'v20.20.2',
    ownNodeVersion: 'v20.20.2', package: { dependencies: [], engines: '<=20' } }, [['warning', 'node']]],
  'a Node that lacks security fixes, of the app alone': [{ nodeVersion: 'v24.0.0', hasNvm: true }, [['warning',
    'app-node', '. ~/.nvm/nvm.sh && nvm install 24']]],
  'a Node that lacks security fixes, of clusterdeck alone, as another program runs the app': [{ nodeVersion: null,
    ownNodeVersion: 'v24.0.0', hasNvm: true, package: { dependencies: [], engines: '>=99' } }, [['warning', 'node',
    'node=$(. ~/.nvm/nvm.sh && nvm install 24 >&2 && nvm which 24) && clusterdeck upgrade --node "$node" --wait']]],
  'a Node that the app does not want': [{ package: { dependencies: [], engines: '>=26' }, hasNvm: true }, [['warning',
    'engines',
    'node=$(. ~/.nvm/nvm.sh && nvm install 26 >&2 && nvm which 26) && clusterdeck upgrade --node "$node" --wait']]],
  'a range that is not read': [{ package: { dependencies: [], engines: '18 - 20' } }, [['unknown', 'engines']]],
  'a clock that nobody keeps': [{ machine: { isClockSynchronized: false } }, [['warning', 'clock',
    'sudo timedatectl set-ntp true']]],
  'a clock that was set back': [{ running: { newestEventAt: Date.parse('2026-11-01T01:00:00Z') } }, [['error', 'clock',
    'sudo timedatectl set-ntp true']]],
  'a data folder that cannot be written': [{ disk: { isWritable: false } }, [['error', 'data-folder',
    '--data-dir /home/ada/.local/state/clusterdeck-decks/shop']]],
  'a data folder on a network file system': [{ disk: { type: 'network' } }, [['error', 'data-folder',
    '--data-dir /home/ada/.local/state/clusterdeck-decks/shop']]],
  'a data folder in memory': [{ disk: { type: 'memory' } }, [['warning', 'data-folder',
    '--data-dir /home/ada/.local/state/clusterdeck-decks/shop']]],
  'a disk that is nearly full': [{ disk: { freeBytes: 300 * MIB } }, [['warning', 'disk',
    'Remove what is not needed there; what takes the space: du -xh --max-depth=2 /srv/shop/.clusterdeck | sort -h | tail']]],
  'releases that have no room': [{ disk: { freeBytes: 1000 * MIB }, running: { releaseBytes: 200 * MIB } }, [['warning',
    'kept-releases', '--releases-keep 2']]],
  'a data folder that goes with its container': [{ disk: { type: 'overlay', isRoot: true },
    machine: { isContainer: true, hasSystemd: false, service: null, firstProcess: 'clusterdeck' } }, [['warning',
    'container-disk', 'Give the container a volume there: docker run -v shop-deck:/srv/shop/.clusterdeck']]],
  'a shell as process 1': [{ machine: { isContainer: true, hasSystemd: false, service: null, firstProcess: 'sh' } }, [[
    'warning',
    'stop',
    'Let clusterdeck be process 1, with a list in the Dockerfile: CMD ["clusterdeck", "start"]'
  ]]],
  'nothing that starts it at boot': [{ machine: { service: null, isInService: false } }, [['warning', 'at-boot',
    'clusterdeck install /srv/shop/app.js']]],
  'a service that is not enabled': [{
    machine: { service: { name: 'shop.service', isOfUser: true, killMode: 'mixed', isEnabled: false, lingers: true } }
  }, [['warning', 'at-boot', 'systemctl --user enable shop.service']]],
  'a service of a user who does not linger': [{
    machine: { service: { name: 'shop.service', isOfUser: true, killMode: 'mixed', isEnabled: true, lingers: false } }
  }, [['error', 'linger', 'loginctl enable-linger ada']]],
  'a unit that ends all at once': [{
    machine: {
      service: { name: 'shop.service', isOfUser: false, killMode: 'control-group', isEnabled: true, lingers: null }
    }
  }, [['error', 'stop',
    'printf \'[Service]\\nKillMode=mixed\\n\' | sudo install -D -m 644 /dev/stdin /etc/systemd/system/shop.service.d/kill-mode.conf && sudo systemctl daemon-reload']]],
  'no keeper': [{ running: { isKept: false } }, [['warning', 'keeper',
    'Start the app without --no-keeper and CLUSTERDECK_KEEPER=off']]],
  'another version than is installed': [{ running: { installedVersion: '1.1.0' } }, [['warning', 'version',
    'clusterdeck upgrade --wait']]],
  'another version than is installed, without a keeper, so that no upgrade is possible': [{
    running: { installedVersion: '1.1.0', isKept: false }
  }, [['warning', 'keeper', 'Start the app without --no-keeper and CLUSTERDECK_KEEPER=off'], ['warning', 'version']]],
  'an admin page without TLS': [{
    config: { releases: { mode: 'folder' }, ready: { path: '/' }, admin: { host: '0.0.0.0', plainHttp: true } }
  }, [['warning', 'admin', '--admin-host 127.0.0.1']]],
  'a crash loop': [{
    running: {
      health: { tone: 'bad', text: 'No worker serves; slot 1 keeps crashing', hint: '', about: null, reasons: [],
        problems: 1 }
    }
  }, [['error', 'health', 'clusterdeck status']]],
  'a port in use': [{ running: null, port: '3000', machine: { listeners: [{ port: 3000, address: '00000000' }] } }, [[
    'error',
    'port',
    'ss -ltnp \'sport = :3000\''
  ], ['unknown', 'memory'], ['unknown', 'at-boot']]]
}

for (const [title, [changes, expected]] of Object.entries(CASES)) {
  test(`finds ${title}`, () => {
    assert.deepEqual(found(changes), expected)
  })
}

test('every problem says why it matters, in one sentence', () => {
  for (const [changes] of Object.values(CASES)) {
    for (const { id, severity, why } of reportOf(soundFacts(changes)).items) {
      if (severity === 'error' || severity === 'warning')
        assert.match(why, id === 'health' || id === 'in-place' ? /^/ : /^\S.+\.$/, id)
    }
  }
})
