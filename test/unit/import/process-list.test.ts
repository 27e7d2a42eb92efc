import assert from 'node:assert/strict'
import { test } from 'node:test'
import { configText } from '../../../server/import/config-text.ts'
import { convertEcosystem } from '../../../server/import/convert.ts'
import { appsOfList } from '../../../server/import/process-list.ts'
import { loadGenerated } from '../../support/generated-config.ts'

const SHELL = { PATH: '/bin', HOME: '/home/ada', LANG: 'C', COMPANY: 'acme', npm_config_cache: '/tmp' }

/** A process as PM2 lists it. `more`: of it; `env`: its own variables. */
function listed (more: object = {}, env: Record<string, unknown> = {}) {
  const all = { ...SHELL, PM2_HOME: '/home/ada/.pm2', unique_id: 'a-b', ...env }
  return { pid: 1, name: 'shop', monit: { memory: 1, cpu: 0 },
    pm2_env: { ...all, env: all, name: 'shop', pm_exec_path: '/srv/shop/server.js', pm_cwd: '/srv/shop',
      exec_interpreter: process.execPath, exec_mode: 'cluster_mode', instances: 2, args: [], node_args: [],
      autorestart: true, autostart: true, vizion: true, pmx: true, automation: true, treekill: true, windowsHide: true,
      username: 'ada', namespace: 'default', instance_var: 'NODE_APP_INSTANCE', kill_retry_time: 100, merge_logs: false,
      watch: false, status: 'online', pm_uptime: 1, axm_options: {},
      pm_out_log_path: '/home/ada/.pm2/logs/shop-out.log', ...more } }
}

test('processes of one name are one app, with what PM2 was told and nothing of what it has filled in', async () => {
  const { apps } = appsOfList([listed({ max_memory_restart: 300 * 1024 ** 2 }, { PORT: '3000' }),
    listed({}, { PORT: '3000' })], SHELL)
  assert.deepEqual(apps, [{ name: 'shop', script: '/srv/shop/server.js', cwd: '/srv/shop', instances: 2,
    exec_interpreter: 'node', env: { PORT: '3000' }, max_memory_restart: 300 * 1024 ** 2, exec_mode: 'cluster_mode',
    watch: false }])
  const conversion = convertEcosystem(apps, { folder: '/srv/shop', target: '/srv/shop',
    look: (file) => ({ file, runs: 'node' }) })
  assert.deepEqual(await loadGenerated(configText(conversion, { source: 'pm2 jlist' })), { name: 'shop',
    entry: 'server.js', cwd: '.', env: { PORT: '3000' }, workers: 2, recycle: { maxRssBytes: 300 * 1024 ** 2 } })
})

test('of the environment only what the shell has not is taken, and each name is told', () => {
  const { apps: [{ env }], remarks } = appsOfList([
    listed({}, { DATABASE_PASSWORD: 'hush', COMPANY: 'other', PM2_USAGE: 'CLI', npm_lifecycle_event: 'x',
      SSH_TTY: '/dev/pts/1' })
  ], SHELL)
  assert.deepEqual(env, { DATABASE_PASSWORD: 'hush', COMPANY: 'other' })
  const text = remarks.join('\n')
  assert.match(text, /^shop: taken with their values: COMPANY, DATABASE_PASSWORD\.$/m)
  assert.match(text, /^shop: these may be secret: DATABASE_PASSWORD\./m)
  assert.doesNotMatch(text, /hush/)
  assert.match(appsOfList([listed()], SHELL).remarks.join('\n'),
    /^shop: left out, as this shell has the same: COMPANY\.$/m)
})

test('ports that PM2 has counted up begin with the first', () => {
  const one = (port: number) => listed({ increment_var: 'PORT', PORT: port }, { PORT: port })
  const { apps: [{ env }] } = appsOfList([one(4001), one(4000), one(4002)], SHELL)
  assert.deepEqual(env, { PORT: 4000 })
})

test('what PM2 runs by the clock alone is a job, in a run and between two; a server that somebody has stopped stays stopped, which is said', async () => {
  const place = { folder: '/srv/shop', target: '/srv/shop', look: (file: string) => ({ file, runs: 'node' as const }) }
  const become = (more: object) => {
    const { apps, remarks } = appsOfList([
      listed({ cron_restart: '0 3 * * *', exec_mode: 'fork_mode', ...more }, { WHO: 'ada' })
    ], SHELL)
    return { text: configText(convertEcosystem(apps, place), { source: 'pm2 jlist' }), said: remarks.join('\n') }
  }
  for (const status of ['stopped', 'online']) {
    const { text } = become({ status, autorestart: false, args: ['-v'], node_args: ['--no-warnings'],
      max_memory_restart: 300 * 1024 ** 2 })
    assert.deepEqual(await loadGenerated(text), {
      ...{ name: 'shop', entry: 'true', cwd: '.', env: { WHO: 'ada' }, workers: 1, restart: { policy: 'never' } },
      jobs: {
        shop: { cron: '0 3 * * *', command: ['node', '--no-warnings', 'server.js', '-v'], overlap: 'replace',
          timeoutMs: 2 ** 31 - 1 }
      }
    })
  }
  const { text, said } = become({ status: 'stopped' })
  assert.match(text, /shop: \{\n {6}autostart: false,\n {6}entry: 'server\.js'/)
  assert.doesNotMatch(text, /cron:|jobs:/)
  assert.match(said,
    /^shop: somebody has stopped it, and PM2 would start it all the same at 0 3 \* \* \* \(cron_restart\)/m)
})

test('modules of PM2 and what is no process are left out', () => {
  const { apps, remarks } = appsOfList([listed({ pmx_module: true, name: 'pm2-logrotate' }), null, {}, {
    pm2_env: 'x'
  }], SHELL)
  assert.deepEqual([apps, remarks], [[], ['Left out: pm2-logrotate, a module of PM2.']])
})
